"""The stubs that editors and type checkers read."""

import ast
import builtins
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import kiln

FOLDER = pathlib.Path(kiln.__file__).parent / "_C"


def names_of(path):
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }


def test_every_part_has_a_stub():
    assert (pathlib.Path(kiln.__file__).parent / "py.typed").exists()
    for module in ("_errors", "_functional", "_init", "_linalg", "_optim"):
        expected = {n for n in vars(getattr(kiln._C, module)) if not n.startswith("_")}
        assert expected <= names_of(FOLDER / f"{module}.pyi")
    root = names_of(FOLDER / "__init__.pyi")
    assert {"Tensor", "Parameter", "zeros", "matmul", "ModuleBase"} <= root
    # The folder of stubs does not hide the module.
    assert importlib.util.find_spec("kiln._C").origin.endswith(".so")


def test_types_in_tensor_are_not_its_methods():
    tree = ast.parse((FOLDER / "__init__.pyi").read_text())
    tensor = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    members = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)}
    assert {"float", "int", "bool", "dtype", "device"} <= members
    for function in tensor.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        arguments = function.args.args + function.args.kwonlyargs
        for annotation in [a.annotation for a in arguments if a.annotation] + [function.returns]:
            used = {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}
            assert not used & members, (function.name, used & members)


def defined_in(tree):
    """(types, functions) that a .pyi file knows at its top."""
    types = set()
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            types |= {(name.asname or name.name).split(".")[0] for name in node.names}
        if isinstance(node, ast.ClassDef):
            types.add(node.name)
        if isinstance(node, ast.Assign):
            types |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return types, {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_type_is_known():
    for path in FOLDER.glob("*.pyi"):
        tree = ast.parse(path.read_text())
        types, functions = defined_in(tree)
        known = (types | set(vars(builtins))) - functions
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            arguments = function.args.args + function.args.kwonlyargs
            for annotation in [a.annotation for a in arguments if a.annotation]:
                used = {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}
                assert used <= known, (path.name, function.name, used - known)


def test_every_method_of_tensors_has_a_stub():
    tree = ast.parse((FOLDER / "__init__.pyi").read_text())
    tensor = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    members = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)}
    members |= {n.target.id for n in tensor.body if isinstance(n, ast.AnnAssign)}
    public = {n for n in dir(kiln.Tensor) if not n.startswith("_")}
    assert public <= members


@pytest.mark.skipif(
    not importlib.util.find_spec("mypy") and not os.environ.get("KILN_CI"),
    reason="mypy is not installed (script/bootstrap --python)",
)
def test_mypy_finds_no_error():
    command = [sys.executable, "-m", "mypy", *map(str, sorted(FOLDER.glob("*.pyi")))]
    done = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_editors_see_examples():
    root = ast.parse((FOLDER / "__init__.pyi").read_text())
    functions = {n.name: ast.get_docstring(n) for n in reversed(root.body) if isinstance(n, ast.FunctionDef)}
    assert ">>> kiln.mul(" in functions["mul"] and "broadcast" in functions["mul"]
    tensor = next(n for n in root.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    methods = {n.name: ast.get_docstring(n) for n in reversed(tensor.body) if isinstance(n, ast.FunctionDef)}
    assert ".mul_(2)" in methods["mul_"]
    layers = ast.parse((FOLDER.parent / "nn" / "layers.pyi").read_text())
    classes = {n.name: ast.get_docstring(n) for n in layers.body if isinstance(n, ast.ClassDef)}
    assert [name for name, text in classes.items() if ">>> " not in (text or "")] == []
