"""Generates the type stubs of kiln._C and kiln.nn.layers, and makes them what type checkers understand.

usage: finish_stubs.py FOLDER_OF_THE_MODULE OUTPUT_FOLDER

nanobind's generator knows nothing of five things: members of Tensor (float(), dtype, ...) hide types
of the same name within the class; the function complex() hides the type everywhere; the module, imported from beside the package here, is kiln._C; and
the error classes, which say that they are kiln.errors', stand in kiln._C._errors; and what an op
returns for which arguments is in stub_types.py.
"""

import ast
import pathlib
import re
import subprocess
import sys

import stub_docs
import stub_types

# Where a type stands in a signature.
PLACE = r"(?:(?<=: )|(?<=-> )|(?<=\| )|(?<=\[)|(?<=float, )|(?<=int, ))"
BUILTIN = re.compile(PLACE + r"(float|int|bool)\b")
COMPLEX = re.compile(PLACE + r"complex\b")
OWN = re.compile(r"(?:(?<=: )|(?<=-> )|(?<=\| )|(?<=\[))(dtype|device)\b")
ALIASES = {"dtype": "_DType", "device": "_Device"}

LAST_WORDS = """
__version__: str

class ModuleBase:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
"""

# `with device:`, of kiln/_device.py.
WITH_DEVICE = """    def __enter__(self) -> device: ...
    def __exit__(self, *_: object) -> None: ...
"""

# What the package sets on the class besides functions.
ATTRIBUTES = """    layout: str
    is_sparse: builtins.bool
    is_sparse_csr: builtins.bool
    is_meta: builtins.bool
    is_nested: builtins.bool
    is_mkldnn: builtins.bool
    is_xla: builtins.bool
    is_mps: builtins.bool
    is_xpu: builtins.bool
    is_vulkan: builtins.bool
    is_ipu: builtins.bool
    is_mtia: builtins.bool
    is_maia: builtins.bool
    def is_same_size(self, other: Tensor) -> builtins.bool: ...
"""


def methods_in_python(text):
    """Stubs of Tensor's methods that are written in Python and not in text."""
    lines = [ATTRIBUTES]
    text = re.search(r"^class Tensor:\n(.*?)(?=^\S)", text, re.S | re.M)[1]
    folder = pathlib.Path(__file__).parent / "kiln"
    for path in (folder / "_methods.py", folder / "_compositions.py", folder / "_sparse_methods.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or not node.args.args or node.name[0] == "_":
                continue
            if node.args.args[0].arg == "self" and f"def {node.name}(self" not in text:
                node.args.args[0].annotation = None  # of self
                result = ast.unparse(node.returns) if node.returns else "Any"
                lines.append(f"    def {node.name}({ast.unparse(node.args)}) -> {result}: ...\n")
    return "".join(lines)


def constant(file, name):
    """What a name at the top of a file of the package is: a literal, or text.split()."""
    tree = ast.parse((pathlib.Path(__file__).parent / "kiln" / file).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            if isinstance(node.value, ast.Call):
                return ast.literal_eval(node.value.func.value).split()
            return ast.literal_eval(node.value)
    raise KeyError(name)


def extra_keywords(part):
    """[(names, arguments)] of keywords that functions take beside their own: see kiln/_keywords.py."""
    placed = [n.removeprefix(part) for n in constant("_keywords.py", "_PLACED") if n.startswith(part)]
    formatted = [n for n in constant("_keywords.py", "_FORMATTED") if n.startswith(part)]
    reduced = constant("_keywords.py", "_REDUCED") if part == "_functional." else ()
    return [
        (set(constant("_keywords.py", "_OUT").get(part, "").split()), "out: Any = None"),
        (set(placed), "layout: str | None = None, pin_memory: bool = False"),
        (set(formatted), "memory_format: str | None = None"),
        (set(reduced), "size_average: bool | None = None, reduce: bool | None = None"),
    ]


def with_keywords(text, part):
    """The text with the keywords of extra_keywords()."""

    def added(arguments, more):
        star = "" if re.search(r"(^|, )\*(?!\*)", arguments) else "*, "
        return f"{arguments}{', ' if arguments else ''}{star}{more}"

    tables = extra_keywords(part)

    def add(match):
        indent, name, arguments = match.groups()
        key = f"Tensor.{name}" if indent else name
        for names, more in tables:
            if key in names and not (more.startswith("memory_format") and name == "to"):
                arguments = added(arguments, more)
        return f"{indent}def {name}({arguments}) ->"

    parts = re.split(r"^(?=class )", text, flags=re.M)
    for i, chunk in enumerate(parts):
        if i == 0 or chunk.startswith("class Tensor:"):
            parts[i] = re.sub(r"^( *)def (\w+)\((.*)\) ->", add, chunk, flags=re.M)
        else:  # functions behind a class
            parts[i] = re.sub(r"^()def (\w+)\((.*)\) ->", add, chunk, flags=re.M)
    return "".join(parts)


def finish(text, is_root, part=""):
    text = with_keywords(text, part)
    text = re.sub(r"^(from|import) _C\b", r"\1 kiln._C", text, flags=re.M)
    text = re.sub(r"(?<![\w.])_C\.", "kiln._C.", text)
    text = text.replace("| None | None", "| None")
    text = text.replace("def __hash__(self, /):", "def __hash__(self, /) -> int:")  # of a slot
    # What comes back depends on the arguments.
    text = text.replace(") -> object:", ") -> Any:").replace("__int__(self) -> Any", "__int__(self) -> int")
    if is_root:
        text = text.replace("class Tensor:\n", "class Tensor:\n" + methods_in_python(text))
        text = text.replace("class device:\n", "class device:\n" + WITH_DEVICE)
    lines, in_tensor = [], False
    for line in text.split("\n"):
        if line and not line[0].isspace():
            in_tensor = line.startswith("class Tensor")
        if in_tensor and line.lstrip().startswith("def "):
            line = BUILTIN.sub(r"builtins.\1", line)
            line = OWN.sub(lambda match: ALIASES[match[1]], line)
        if is_root:
            line = COMPLEX.sub("builtins.complex", line)
        lines.append(stub_types.retyped(line, part))
    text = "\n".join(lines)
    if is_root:
        heading = stub_types.IMPORTS
        text += "\n" + stub_types.named_tuples() + stub_types.ALIASES
    else:
        heading = "import builtins\nfrom typing import Any, Literal, overload\nfrom kiln._C import Gradients, Tensor, device, dtype"
        used = sorted(name for name in stub_types.NAMED if re.search(rf"\b{name}\b", text))
        used += ["_DTypeLike"] if "_DTypeLike" in text else []
        heading += f"\nfrom kiln._C import {', '.join(used)}" if used else ""
    docstring, rest = text.split("\n", 1)
    # Comparisons give tensors, where object's give bools; x **= y takes less than x ** y.
    checks = '# mypy: disable-error-code="override,misc"'
    return f"{docstring}\n{checks}\n\n{heading}\n{rest}" + (LAST_WORDS if is_root else "")


HIDDEN = "grad Parameter Buffer Param ParamId ParamMapper ModuleBase CppHandle GradFn Gradients Record RecordItem"


def public_names(text):
    """__all__ of the root: what `from ._C import *` leaves in kiln for its users."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    names = sorted(n for n in names - set(HIDDEN.split()) if not n.startswith("_"))
    return f"__all__ = {names!r}\n"


def functions_of_methods(text):
    """_named.pyi: the functions that kiln/_names.py makes of methods."""
    names = constant("_names.py", "_IN_PLACE") + constant("_names.py", "_METHODS")
    tensor = re.search(r"^class Tensor:\n(.*?)(?=^\S)", text, re.S | re.M)[1]
    lines = ["import builtins", "from collections.abc import Callable, Sequence", "from typing import Any, overload\n",
             "from kiln._C import Tensor, _Device, _DType, _DTypeLike, _Index\n"]  # fmt: skip
    for name in sorted(set(names)):
        forms = re.findall(rf"^    def {name}\(self(.*)\) -> (.*?):", tensor, re.M)
        for arguments, result in forms:
            lines += ["@overload"] * (len(forms) > 1)
            result = result.replace("Self", "Tensor")
            lines.append(f"def {name}(input: Tensor{arguments}) -> {result}: ...")
    return "\n".join(lines) + "\n"


def error_stubs(folder):
    sys.path.insert(0, folder)
    import _C

    lines = ["import builtins\n"]
    kinds = {name: kind for name, kind in vars(_C._errors).items() if isinstance(kind, type)}
    for name in sorted(kinds, key=lambda name: name != "Error"):
        bases = [b.__name__ if b in kinds.values() else f"builtins.{b.__name__}"
                 for b in kinds[name].__bases__]  # fmt: skip
        lines.append(f"class {name}({', '.join(bases)}): ...")
    return "\n".join(lines) + "\n"


LAYERS = """# Written by finish_stubs.py from kiln/nn/layers.def.
from collections.abc import Sequence
from typing import Any, Self, overload

from kiln._C import Parameter, Tensor, _DTypeLike, device as _Device, dtype as _DType

from .module import Module
from .utils.rnn import PackedSequence

homes: dict[str, dict[str, type[Module]]]

def signature(row: dict[str, Any]) -> str: ...
"""


def layer_stub(row):
    """The class that kiln/nn/layers.py makes from a row."""
    if row["takes_anything"]:
        arguments = ["*args: Any", "**kwargs: Any"]
    else:
        arguments, later = [], []
        for name, standard, annotation, keyword_only in row["options"]:
            text = f"{name}: {annotation}" + "".join(f" = {value!r}" for value in standard)
            (later if keyword_only else arguments).append(text)
        if row["has_parameters"]:
            arguments += ["device: _Device | str | None = None", "dtype: _DTypeLike | None = None"]
        arguments += ["*", *later] if later else []
    # A bool may share its name with a parameter, and a tensor does: those are found as Any.
    parts = {"Tensor | None", "bool"} if row["has_parameters"] else {"Tensor | None"}
    members = {name: note for name, _, note, _ in row["options"] if note not in parts}
    words = stub_docs.literal([row["doc"], *stub_docs.paragraphs(f"nn.{row['name']}")], "    ")
    lines = [f"class {row['name']}(Module):", *words, "    _version: int"]
    lines += [f"    {name}: {note}" for name, note in members.items()]
    lines += stub_types.members(row["name"])
    lines.append(f"    def __init__(self, {', '.join(arguments)}) -> None: ...".replace("self, )", "self)"))
    lines += stub_types.calls(row["name"], row["forward"])
    lines.append("    def extra_repr(self) -> str: ...")
    lines += [f"    def {method}(self) -> None: ..." for method in row["methods"]]
    return "\n".join(lines) + "\n"


def layer_stubs():
    """kiln/nn/layers.pyi. After error_stubs(), which has imported the module."""
    import _C

    rows = _C._layers()
    names = sorted(row["name"] for row in rows)
    return "\n".join([LAYERS, *map(layer_stub, rows), f"__all__ = {names!r}\n"])


def main():
    module, output = sys.argv[1:]
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-P", "-r", "-m", "_C"]
    subprocess.run([*command, "-i", module, "-O", output], check=True)
    for path in pathlib.Path(output, "_C").glob("*.pyi"):
        is_root = path.name == "__init__.pyi"
        text = finish(path.read_text(), is_root, "" if is_root else path.stem + ".")
        if is_root:
            named = functions_of_methods(text)
        whole = stub_docs.with_docstrings(text, "" if is_root else path.stem + ".")
        path.write_text(whole + public_names(text) if is_root else whole)
    pathlib.Path(output, "_C", "_named.pyi").write_text(named)
    pathlib.Path(output, "_C", "_errors.pyi").write_text(error_stubs(module))
    pathlib.Path(output, "nn", "layers.pyi").write_text(layer_stubs())


if __name__ == "__main__":
    main()
