"""The stubs that editors and type checkers read."""

import ast
import importlib.util
import pathlib

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
