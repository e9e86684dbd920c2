"""Generates the type stubs of kiln._C and kiln.nn.layers, and makes them what type checkers understand.

usage: finish_stubs.py FOLDER_OF_THE_MODULE OUTPUT_FOLDER

nanobind's generator knows nothing of four things: members of Tensor (float(), dtype, ...) hide types
of the same name within the class; the function complex() hides the type everywhere; the module, imported from beside the package here, is kiln._C; and
the error classes, which say that they are kiln.errors', stand in kiln._C._errors.
"""

import ast
import pathlib
import re
import subprocess
import sys

# Where a type stands in a signature.
PLACE = r"(?:(?<=: )|(?<=-> )|(?<=\| )|(?<=\[)|(?<=float, )|(?<=int, ))"
BUILTIN = re.compile(PLACE + r"(float|int|bool)\b")
COMPLEX = re.compile(PLACE + r"complex\b")
OWN = re.compile(PLACE + r"(dtype|device)\b")
ALIASES = {"dtype": "_DType", "device": "_Device"}

LAST_WORDS = """
__version__: str
_DType = dtype
_Device = device

class ModuleBase:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
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
    for path in (folder / "_methods.py", folder / "_compositions.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or not node.args.args:
                continue
            if node.args.args[0].arg == "self" and f"def {node.name}(self" not in text:
                lines.append(f"    def {node.name}({ast.unparse(node.args)}) -> Any: ...\n")
    return "".join(lines)


def functions_with_out(part):
    """Names of the part's functions that take out=: see kiln/_keywords.py."""
    tree = ast.parse((pathlib.Path(__file__).parent / "kiln" / "_keywords.py").read_text())
    table = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_OUT"
    )
    return set(table.get(part, "").split())


def with_out(text, part):
    names = functions_with_out(part)

    def add(match):
        name, arguments = match[1], match[2]
        if name not in names:
            return match[0]
        star = "" if re.search(r"(^|, )\*", arguments) else "*, "
        return f"def {name}({arguments}{', ' if arguments else ''}{star}out: Any = None) ->"

    return re.sub(r"^def (\w+)\((.*)\) ->", add, text, flags=re.M)


def finish(text, is_root, part=""):
    text = with_out(text, part)
    text = re.sub(r"^(from|import) _C\b", r"\1 kiln._C", text, flags=re.M)
    text = re.sub(r"(?<![\w.])_C\.", "kiln._C.", text)
    text = text.replace("| None | None", "| None")
    text = text.replace("def __hash__(self, /):", "def __hash__(self, /) -> int:")  # of a slot
    # What comes back depends on the arguments.
    text = text.replace(") -> object:", ") -> Any:").replace("__int__(self) -> Any", "__int__(self) -> int")
    if is_root:
        text = text.replace("class Tensor:\n", "class Tensor:\n" + methods_in_python(text))
    lines, in_tensor = [], False
    for line in text.split("\n"):
        if line and not line[0].isspace():
            in_tensor = line.startswith("class Tensor")
        if in_tensor and line.lstrip().startswith("def "):
            line = BUILTIN.sub(r"builtins.\1", line)
            line = OWN.sub(lambda match: ALIASES[match[1]], line)
        if is_root:
            line = COMPLEX.sub("builtins.complex", line)
        lines.append(line)
    text = "\n".join(lines)
    heading = "import builtins" if is_root else (
        "from typing import Any\nfrom kiln._C import Gradients, Tensor, device, dtype"
    )
    docstring, rest = text.split("\n", 1)
    # Comparisons give tensors, where object's give bools; x **= y takes less than x ** y.
    checks = '# mypy: disable-error-code="override,misc"'
    return f"{docstring}\n{checks}\n\n{heading}\n{rest}" + (LAST_WORDS if is_root else "")


def error_stubs(folder):
    sys.path.insert(0, folder)
    import _C

    lines = ["import builtins\n"]
    kinds = {name: kind for name, kind in vars(_C._errors).items() if isinstance(kind, type)}
    for name in sorted(kinds, key=lambda name: name != "Error"):
        bases = [b.__name__ if b is _C._errors.Error else f"builtins.{b.__name__}"
                 for b in kinds[name].__bases__]  # fmt: skip
        lines.append(f"class {name}({', '.join(bases)}): ...")
    return "\n".join(lines) + "\n"


LAYERS = """# Written by finish_stubs.py from kiln/nn/layers.def.
from collections.abc import Sequence
from typing import Any

from kiln._C import Tensor, device as _Device, dtype as _DType

from .module import Module

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
            arguments += ["device: _Device | str | None = None", "dtype: _DType | None = None"]
        arguments += ["*", *later] if later else []
    # A bool may share its name with a parameter, and a tensor does: those are found as Any.
    parts = {"Tensor | None", "bool"} if row["has_parameters"] else {"Tensor | None"}
    members = {name: note for name, _, note, _ in row["options"] if note not in parts}
    forward = ", ".join(
        word if word == "*" else f"{word.partition('=')[0]}: Any" + word[len(word.partition("=")[0]) :]
        for word in row["forward"].split(", ")
    )
    lines = [f"class {row['name']}(Module):", f'    """{row["doc"]}"""', "    _version: int"]
    lines += [f"    {name}: {note}" for name, note in members.items()]
    lines.append(f"    def __init__(self, {', '.join(arguments)}) -> None: ...".replace("self, )", "self)"))
    lines.append(f"    def forward(self, {forward}) -> Any: ...")
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
        path.write_text(finish(path.read_text(), is_root, "" if is_root else path.stem + "."))
    pathlib.Path(output, "_C", "_errors.pyi").write_text(error_stubs(module))
    pathlib.Path(output, "nn", "layers.pyi").write_text(layer_stubs())


if __name__ == "__main__":
    main()
