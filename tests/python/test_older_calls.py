"""Arguments of other types that PyTorch takes: NumPy's numbers, tensors of one number, and the order
of arguments of its older versions. Each call is made in PyTorch, too, where it is installed."""

import warnings

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

LIBRARIES = [kiln]
if HAS_TORCH:
    import torch

    LIBRARIES.append(torch)


def ones(lib):
    return lib.ones(2, 3)


CASES = {
    "alpha first": (lambda t: t.ones(2).add_(2.0, t.ones(2)), [3.0, 3.0]),
    "alpha first, sub": (lambda t: t.ones(2).sub(2, t.ones(2)), [-1.0, -1.0]),
    "value first": (lambda t: t.ones(2).addcmul_(2.0, t.ones(2), t.ones(2)), [3.0, 3.0]),
    "value first, div": (lambda t: t.ones(2).addcdiv(4.0, t.ones(2), t.full((2,), 2.0)), [3.0, 3.0]),
    "beta first": (lambda t: t.addmm(0.5, t.ones(1, 1), t.ones(1, 2), t.ones(2, 1)), [[2.5]]),
    "beta and alpha": (lambda t: t.ones(1, 1).addmm_(0.5, 2, t.ones(1, 2), t.ones(2, 1)), [[4.5]]),
    "alpha is a tensor": (lambda t: t.ones(2).add_(t.ones(2), alpha=t.tensor(2.0)), [3.0, 3.0]),
    "two numbers": (lambda t: [t.div(3, 2).item(), t.add(1, 2).item(), t.mul(2, 3.0).item()], [1.5, 3, 6.0]),
    "arange of a tensor": (lambda t: t.arange(t.tensor([3, 4]).max()), [0, 1, 2, 3]),
    "roll by NumPy": (lambda t: t.arange(3).roll(np.int64(1), 0), [2, 0, 1]),
    "sum along NumPy": (lambda t: ones(t).sum(np.int64(1)), [3.0, 3.0]),
    "sum along several": (lambda t: ones(t).sum(dim=(np.int64(0), np.int64(1))), 6.0),
    "kernel of NumPy": (lambda t: list(t.nn.Conv2d(1, 2, np.int64(3))(t.ones(1, 1, 5, 5)).shape), [1, 2, 3, 3]),
    "norm of NumPy": (lambda t: list(t.nn.LayerNorm(np.int64(3)).weight.shape), [3]),
    "pool of NumPy": (lambda t: t.nn.functional.max_pool1d(t.arange(4.0).reshape(1, 1, 4), np.int64(2)), [[[1.0, 3.0]]]),
    "size of NumPy": (lambda t: list(t.nn.functional.interpolate(t.ones(1, 1, 4, 4), size=np.int64(2)).shape), [1, 1, 2, 2]),
    "scatter one number": (lambda t: t.zeros(1, 3).scatter(1, t.tensor([[1]]), 2.0), [[0.0, 2.0, 0.0]]),
    "where of uint8": (lambda t: t.where(t.tensor([1, 0], dtype=t.uint8), t.ones(2), t.zeros(2)), [1.0, 0.0]),
    "randint_like by high": (lambda t: list(t.randint_like(t.ones(3), high=1)), [0.0, 0.0, 0.0]),
    "randint by high": (lambda t: t.randint(high=1, size=(2,)), [0, 0]),
    "sizes": (lambda t: [list(t.Tensor(2, 3).shape), list(t.FloatTensor(t.Size([2, 3])).shape)], [[2, 3], [2, 3]]),
    "values": (lambda t: [t.Tensor([1, 2]).tolist(), t.FloatTensor((2, 3)).tolist()], [[1.0, 2.0], [2.0, 3.0]]),
    "generator is None": (lambda t: list(t.nn.init.ones_(t.empty(2))) + list(t.nn.init.normal_(t.empty(0), generator=None)), [1.0, 1.0]),
    "softmax without dim": (lambda t: t.nn.functional.softmax(t.zeros(2, 4)).sum(1), [1.0, 1.0]),
    "softmax of three dims": (lambda t: t.nn.functional.log_softmax(t.zeros(1, 2, 1)), [[[0.0], [0.0]]]),
    "comparison with an array": (lambda t: t.ones(2) == np.array(1), [True, True]),
}  # fmt: skip


@pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)
@pytest.mark.parametrize("name", CASES)
def test_call(name, lib):
    call, expected = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = call(lib)
    if hasattr(got, "tolist"):
        got = got.tolist()
    assert [float(x) for x in got] == expected if name.endswith("high") or name.startswith("gen") else got == expected


def test_older_order_warns():
    with pytest.warns(UserWarning, match="add_: numbers before tensors .* expected alpha=2"):
        kiln.ones(2).add_(2, kiln.ones(2))


def test_what_means_nothing_is_still_refused():
    x = kiln.ones(2)
    for wrong in (
        lambda: x.add_("2"),
        lambda: x.add_(2.0, 3.0),
        lambda: x.sum(dim=1.5),
        lambda: x.roll(np.ones(2)),
        lambda: x.add_(x, alpha=kiln.ones(2)),
        lambda: kiln.addmm(1, 2, 3, x, x),
        lambda: x.addcmul_(2.0, x),
        lambda: kiln.nn.init.normal_(x, generator=3),
    ):
        with pytest.raises((TypeError, AttributeError)):
            wrong()
    assert x.tolist() == [1, 1]


def test_texts_that_are_no_unicode_are_refused():
    for wrong in (
        lambda: kiln.ones(1, 2).expand(kiln.Size(("\ud800", 2))),
        lambda: kiln.zeros("\ud800"),
        lambda: kiln.optim.SGD([kiln.ones(1)], lr=kiln.Size(("\ud800",))),
        lambda: kiln.ones(1).add_("\ud800"),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_arrays_without_dims_are_numbers():
    x = kiln.arange(3.0)
    for y in (x * np.array(2), np.array(2.0) * x, x * np.float64(2)):
        assert y.dtype == kiln.float32 and y.tolist() == [0, 2, 4]
    assert kiln.full((2,), np.array(2.0)).dtype == kiln.float32
    assert kiln.where(x > 1, np.array(1.0), x).tolist() == [0, 1, 1]


@pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)
def test_numbers_of_numpy_keep_their_dtype_in_lists(lib):
    dtypes = [
        ([np.float64(0.5)], lib.float64),
        ([np.float32(0.5), 2.0], lib.float32),
        ([np.float64(0.5), 2], lib.float64),
        ([np.int32(1)], lib.int32),
        ([np.int32(1), 2], lib.int64),
        ([np.int8(1), True], lib.int8),
        ([[np.float16(1)], [np.float64(2)]], lib.float64),
        ([lib.tensor(1.0, dtype=lib.float64)], lib.float64),
        ([1, 2.0], lib.float32),
        ([True], lib.bool),
        (np.float64(0.5), lib.float64),
    ]
    for values, dtype in dtypes:
        assert lib.tensor(values).dtype == dtype, values


@pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)
def test_normal_of_a_size(lib):
    assert lib.normal(0.0, lib.tensor(0.5), (2,)).shape == (2,)
    if lib is kiln:  # PyTorch takes tensors of one number here
        y = lib.normal(lib.tensor([1.0, 5.0]), 0.0, (3, 2))
        assert y.tolist() == [[1, 5]] * 3


def test_generators_of_initializers():
    w, generator = kiln.zeros(4, 3), kiln.Generator()
    kiln.manual_seed(5)
    before = kiln.get_rng_state()
    for fill in (kiln.nn.init.normal_, kiln.nn.init.kaiming_uniform_, kiln.nn.init.orthogonal_):
        generator.manual_seed(1)
        first = fill(w, generator=generator).clone()
        second = fill(w, generator=generator).clone()
        generator.manual_seed(1)
        assert kiln.equal(fill(w, generator=generator), first)
        assert not kiln.equal(first, second)
    assert kiln.equal(kiln.get_rng_state(), before)


@pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)
def test_gradients_of_windows_over_windows(lib):
    x = lib.arange(36.0).reshape(1, 1, 6, 6).requires_grad_()
    windows = x.unfold(2, 3, 1).unfold(3, 3, 1)  # overlapping ones, twice
    (windows * windows).sum().backward()
    times = np.array([1, 2, 3, 3, 2, 1])
    expected = 2 * np.arange(36.0).reshape(6, 6) * np.outer(times, times)
    assert np.array_equal(x.grad[0, 0].numpy(), expected)
    y = lib.arange(8.0).requires_grad_()
    (y.expand(2, 8).unfold(1, 4, 4) ** 2).sum().backward()
    assert y.grad.tolist() == [4.0 * i for i in range(8)]
    z = lib.arange(9.0).requires_grad_()
    (z.unfold(0, 4, 2).diagonal() ** 2).sum().backward()
    assert z.grad.tolist() == [0, 0, 0, 6, 0, 0, 12, 0, 0]


@pytest.mark.parametrize("lib", LIBRARIES, ids=lambda lib: lib.__name__)
def test_functions_of_numpy_give_tensors(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy's, about PyTorch
        y = np.sqrt(lib.tensor([4.0, 9.0]))
    assert isinstance(y, lib.Tensor) and y.tolist() == [2, 3]
