"""Every op case: the Python package gives what C++ gives, and both what PyTorch gives."""

import os

import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import PROGRAM, TOLERANCE, Table, as_tensor, compare, evaluate

if not os.path.exists(PROGRAM):
    pytest.skip(f"SKIPPED: {PROGRAM} is not built", allow_module_level=True)

TABLE = Table()
EACH = pytest.mark.parametrize(
    "case", TABLE.cases, ids=[f"{c['number']}-{c['name']}" for c in TABLE.cases]
)


def run(case, dtype, library):
    return evaluate(case, TABLE.inputs(case, dtype, library), library)


def of_cpp(case, dtype):
    i = case["dtypes"].index(dtype)
    return [TABLE.tensor(case, dtype, "out", k) for k in range(case["results"][i])]


def tolerance(case, dtype):
    return TOLERANCE.get(dtype, 0) * case["rtol_factor"]


@EACH
def test_python_gives_what_cpp_gives(case):
    for dtype in case["dtypes"]:
        compare(
            run(case, dtype, kiln),
            of_cpp(case, dtype),
            tolerance(case, dtype),
            bool(case["shape_only_why"]),
        )


def without(error):
    """Whether PyTorch says that it has no such kernel on the CPU."""
    text = str(error)
    words = ("not implemented for", "not support", "Not implemented", "is not implemented")
    return any(word in text for word in words)


def gradients(case, library):
    inputs = TABLE.inputs(case, "float64", library)
    leaves = [x for x, kind in zip(inputs, case["inputs"]) if kind == "real"]
    for x in leaves:
        x.requires_grad_()
    total = 0
    for i, y in enumerate(evaluate(case, inputs, library)):
        if y.is_floating_point():
            weight = as_tensor(TABLE.tensor(case, "float64", "weight", i), library)
            total = total + (y.double() * weight).sum()
    grads = library.autograd.grad(total, leaves, allow_unused=True)
    return [library.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
@EACH
def test_pytorch_gives_the_same(case):
    import torch

    if case["peer_why"]:
        return  # a deviation; docs/tensor-ops.md lists them with their reasons
    compared = 0
    for dtype in case["dtypes"]:
        try:
            expected = run(case, dtype, torch)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            if not without(error):
                raise
            continue
        compare(
            of_cpp(case, dtype), expected, tolerance(case, dtype), bool(case["shape_only_why"])
        )
        compared += 1
    assert compared, "PyTorch has this op in none of the dtypes"
    if case["gradients"]:
        got = [
            TABLE.tensor(case, "float64", "grad", i) for i in range(case["inputs"].count("real"))
        ]
        try:
            expected = gradients(case, torch)
        except (RuntimeError, NotImplementedError) as error:
            if not without(error):
                raise
        else:
            compare(got, expected, 1e-9 * case["rtol_factor"])
