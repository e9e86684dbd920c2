"""Ops on lists of tensors, against PyTorch."""

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import _foreach

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
DATA = [np.array([0.25, 0.5]), np.array([[0.75, 0.125, 0.5]])]
OTHER = [np.array([2.0, 0.5]), np.array([[0.25, 4.0, 1.0]])]


def cases():
    for name in _foreach._UNARY:
        yield name, (), {}
    for name in ("add", "sub", "mul", "div", "pow", "clamp_max", "clamp_min", "maximum", "minimum"):
        for other in (2.0, [2.0, 0.5], OTHER):
            yield name, (other,), {}
    yield "add", (OTHER,), {"alpha": 0.5}
    yield "sub", (OTHER,), {"alpha": 2}
    yield "mul", (np.array(3.0),), {}
    for name in ("addcmul", "addcdiv"):
        for value in (0.5, [0.5, 2.0]):
            yield name, (OTHER, OTHER, value), {}
    yield "lerp", (OTHER, 0.25), {}
    yield "lerp", (OTHER, OTHER), {}
    yield "norm", (), {}
    yield "norm", (1,), {}
    yield "max", (), {}
    yield "zero", (), {}
    yield "clone", (), {}
    yield "copy", (OTHER,), {}


def given(library, value):
    if isinstance(value, np.ndarray):
        return library.from_numpy(value.copy())
    return [given(library, part) for part in value] if isinstance(value, list) else value


@needs_torch
@pytest.mark.parametrize(("name", "args", "options"), cases())
def test_foreach_is_pytorchs(name, args, options):
    import torch

    for end in ("", "_"):
        if not hasattr(kiln, f"_foreach_{name}{end}"):
            continue
        results = []
        for library in (kiln, torch):
            data = given(library, DATA)
            found = getattr(library, f"_foreach_{name}{end}")(data, *given(library, list(args)), **options)
            assert len(found) == len(data) and all((x is y) == bool(end) for x, y in zip(found, data))
            results.append([x.numpy() for x in found])
        for ours, theirs in zip(*results):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_groups_of_tensors(lib):
    import importlib

    utils = importlib.import_module(f"{lib.__name__}.utils._foreach_utils")
    a, b, c = lib.ones(1), lib.ones(2, dtype=lib.float64), lib.ones(3)
    found = utils._group_tensors_by_device_and_dtype([[a, b, c], [c, b, None]], with_indices=True)
    by_dtype = {dtype: value for (_, dtype), value in found.items()}
    (first, second), indices = by_dtype[lib.float32]
    assert first[0] is a and first[1] is c and second[0] is c and second[1] is None
    assert list(indices) == [0, 2]
    (first, second), indices = by_dtype[lib.float64]
    assert len(first) == 1 and first[0] is b and list(indices) == [1]
    if lib is kiln:
        with pytest.raises(RuntimeError, match="equal lengths"):
            utils._group_tensors_by_device_and_dtype([[a], []])


def test_foreach_with_keywords_and_lists_of_other_lengths(lib):
    (x,) = lib._foreach_pow(2.0, [lib.tensor([1.0, 3.0])])
    assert x.tolist() == [2, 8]
    y = [lib.ones(2)]
    lib._foreach_addcmul_(y, y, y, value=2)
    lib._foreach_add_(y, [lib.ones(2)], alpha=2)
    assert y[0].tolist() == [5, 5]
    with pytest.raises(RuntimeError):
        lib._foreach_add([lib.ones(2)], [lib.ones(2), lib.ones(2)])
