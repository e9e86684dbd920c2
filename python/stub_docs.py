"""Puts the texts of kiln/_docs into the stubs, where editors find them."""

import ast
import importlib.util
import pathlib

_PATH = pathlib.Path(__file__).parent / "kiln" / "_docs" / "entries.py"
_SPEC = importlib.util.spec_from_file_location("entries", _PATH)
entries = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(entries)


def paragraphs(name):
    """What the entry of a name adds to the line of its binding."""
    entry = entries.entry_of(name)
    return [part for part in (entry.text, entry.shared, entry.example) if part] if entry else []


def literal(parts, indent):
    """A docstring, as lines."""
    text = "\n\n".join(parts).replace("\\", "\\\\").replace('"""', '\\"""')
    lines = text.split("\n")
    if len(lines) == 1 and not text.endswith('"'):
        return [f'{indent}"""{text}"""']
    rest = [f"{indent}{line}" if line else "" for line in lines[1:]]
    return [f'{indent}"""{lines[0]}', *rest, f'{indent}"""']


def with_docstrings(text, part):
    """The text of a stub, of which the first form of each function has its docstring."""
    prefix = entries.PARTS.get(part.rstrip("."), f"{part.strip('_')}" if part else "")
    lines = text.split("\n")
    tree = ast.parse(text)
    found = [(prefix + node.name, node) for node in tree.body if isinstance(node, ast.FunctionDef)]
    for kind in tree.body:
        if isinstance(kind, ast.ClassDef) and kind.name == "Tensor":
            found += [(f"Tensor.{n.name}", n) for n in kind.body if isinstance(n, ast.FunctionDef)]
    seen = set()
    edits = []
    for name, node in found:
        more = [] if name in seen else paragraphs(name)
        seen.add(name)
        if not more:
            continue
        indent = " " * (node.col_offset + 4)
        first = node.body[0]
        short = ast.get_docstring(node)
        # The body is a docstring, or ... behind the colon.
        start = first.lineno - 1
        heading = [] if short else [lines[start][: first.col_offset].rstrip()]
        edits.append((start, first.end_lineno, heading + literal([short, *more] if short else more, indent)))
    for start, end, replacement in sorted(edits, key=lambda edit: -edit[0]):
        lines[start:end] = replacement
    return "\n".join(lines)
