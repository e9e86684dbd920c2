"""unique() of bytes and bools, which are counted, beside NumPy."""

import numpy as np
import pytest

import kiln


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 5), (257,), (70000,), (2, 3, 40000)])
def test_unique_of_bytes(dtype, shape):
    rng = np.random.default_rng(3)
    low, high = {"bool": (0, 2), "uint8": (0, 256), "int8": (-128, 128)}[dtype]
    x = np.asarray(rng.integers(low, high, shape)).astype(dtype)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    found = kiln.from_numpy(x).unique(return_inverse=True, return_counts=True)
    assert [part.dtype for part in found] == [getattr(kiln, dtype), kiln.int64, kiln.int64]
    assert np.array_equal(found[0].numpy(), values)
    assert np.array_equal(found[1].numpy(), inverse.reshape(shape))
    assert np.array_equal(found[2].numpy(), counts)
    turned = kiln.from_numpy(x).t() if x.ndim == 2 else kiln.from_numpy(x)
    assert np.array_equal(turned.unique().numpy(), values)


def test_unique_of_one_value_of_a_byte():
    assert kiln.zeros(5, dtype=kiln.bool).unique().tolist() == [False]
    assert kiln.full((100000,), -128, dtype=kiln.int8).unique(return_counts=True)[1].tolist() == [100000]
