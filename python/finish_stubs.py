"""Generates the type stubs of kiln._C, and makes them what type checkers understand.

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

# What kiln/optim/optimizers.py adds to the class.
OPTIMIZER = """class Optimizer:
    def step(self, closure: Any = None, *, gradients: Gradients | None = None) -> Any: ...
    def add_param_group(self, param_group: dict[str, Any]) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None: ...
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
    folder = pathlib.Path(__file__).parent / "kiln"
    for path in (folder / "_methods.py", folder / "_compositions.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or not node.args.args:
                continue
            if node.args.args[0].arg == "self" and f"def {node.name}(self" not in text:
                lines.append(f"    def {node.name}({ast.unparse(node.args)}) -> Any: ...\n")
    return "".join(lines)


def finish(text, is_root):
    text = re.sub(r"^(from|import) _C\b", r"\1 kiln._C", text, flags=re.M)
    text = re.sub(r"(?<![\w.])_C\.", "kiln._C.", text)
    text = text.replace("| None | None", "| None")
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
    text = text.replace("class Optimizer:\n", OPTIMIZER)
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


def main():
    module, output = sys.argv[1:]
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-P", "-r", "-m", "_C"]
    subprocess.run([*command, "-i", module, "-O", output], check=True)
    for path in pathlib.Path(output, "_C").glob("*.pyi"):
        path.write_text(finish(path.read_text(), path.name == "__init__.pyi"))
    pathlib.Path(output, "_C", "_errors.pyi").write_text(error_stubs(module))


if __name__ == "__main__":
    main()
