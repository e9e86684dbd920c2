"""x[...] and x[...] = y, against NumPy, whose rules these are."""

import numpy as np
import pytest

import kiln

BASE = np.arange(60.0).reshape(3, 4, 5)

KEYS = [
    0,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    slice(5, 10),
    slice(-2, None),
    ...,
    None,
    (0, 1),
    (0, 1, 2),
    (slice(None), 1),
    (..., 1),
    (0, ..., 2),
    (None, 0, None),
    (slice(1, 2), slice(None), slice(0, 5, 3)),
    [0, 2],
    ([0, 2], [1, 3]),
    (slice(None), [0, 2]),
    (slice(None), [0, 2], [1, 1]),
    ([0, 2], slice(None), [1, 1]),
    (slice(None), slice(1, 3), [4, 0, 0]),
    ([[0, 1], [2, 0]],),
    ([[0], [1]], [0, 2]),
    (None, [0, 1]),
    (..., [0, -1]),
    BASE > 30,
    (slice(None), np.array([True, False, True, False])),
    np.array([True, False, True]),
    (np.array([True, False, True]), 1),
    (np.array([], dtype=np.int64),),
    np.int64(1),
    True,
]


def to_kiln(key):
    if isinstance(key, tuple):
        return tuple(to_kiln(k) for k in key)
    return kiln.tensor(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_get(key):
    x = kiln.from_numpy(BASE.copy())
    expected = BASE[key]
    got = x[to_kiln(key)]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_set(key):
    expected = BASE.copy()
    expected[key] = -1
    x = kiln.from_numpy(BASE.copy())
    x[to_kiln(key)] = -1
    np.testing.assert_array_equal(x.numpy(), expected)
    values = np.random.default_rng(0).normal(size=BASE[key].shape)
    expected[key] = values
    x[to_kiln(key)] = kiln.from_numpy(values)
    repeated = isinstance(key, tuple) and [4, 0, 0] in [k for k in key if isinstance(k, list)]
    if not repeated:
        np.testing.assert_array_equal(x.numpy(), expected)


def test_basic_indexing_is_a_view():
    x = kiln.zeros(3, 4)
    x[1][2] = 5
    x[:, 0].fill_(7)
    x[..., -1] += 1
    assert x.tolist() == [[7, 0, 0, 1], [7, 0, 5, 1], [7, 0, 0, 1]]


def test_set_broadcasts_and_converts():
    x = kiln.zeros(2, 3, dtype=kiln.int64)
    x[0] = kiln.tensor([1.9, 2.0, 3.0])
    x[1:] = kiln.ones(1, 1, 3)
    assert x.tolist() == [[1, 2, 3], [1, 1, 1]]
    with pytest.raises(RuntimeError):
        x[0] = kiln.ones(2)
    x[x > 1] = 0
    assert x.tolist() == [[1, 0, 0], [1, 1, 1]]


def test_errors():
    x = kiln.zeros(3, 4)
    for key in (3, -4, (0, 4), (0, 0, 0), [3], [-4]):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(IndexError):
        x[..., ...]
    with pytest.raises(IndexError, match="mask"):
        x[kiln.tensor([True, False])]
    with pytest.raises(IndexError):
        x[1.5]
    with pytest.raises(ValueError, match="step"):
        x[::-1]
    with pytest.raises(IndexError):
        kiln.tensor(1)[0]
    with pytest.raises(TypeError):
        x[kiln.tensor([0.5])]


def test_gradients_pass_through_indices():
    x = kiln.arange(12.0).reshape(3, 4).requires_grad_()
    (x[[0, 0, 2], 1:] * 2).sum().backward()
    assert x.grad.tolist() == [[0, 4, 4, 4], [0, 0, 0, 0], [0, 2, 2, 2]]
    x.grad = None
    x[x.detach() > 5].sum().backward()
    assert x.grad.tolist() == [[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]


def test_gradients_pass_through_assignment():
    x = kiln.ones(3, requires_grad=True)
    v = kiln.full((2,), 5.0, requires_grad=True)
    y = x * 2
    y[1:] = v * 3
    (y * kiln.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2, 0, 0] and v.grad.tolist() == [30, 300]


def test_index_put_and_friends():
    x = kiln.zeros(4)
    assert x.index_put_((kiln.tensor([1, 1, 3]),), kiln.tensor([1.0, 2.0, 3.0]), True) is x
    assert x.tolist() == [0, 3, 0, 3]
    assert kiln.nonzero(x).tolist() == [[1], [3]]
    assert [t.tolist() for t in kiln.nonzero(kiln.eye(2), as_tuple=True)] == [[0, 1], [0, 1]]
    assert kiln.masked_select(x, x > 0).tolist() == [3, 3]
    assert x.masked_fill(x == 0, 9).tolist() == [9, 3, 9, 3]
    g = kiln.tensor([[1, 2], [3, 4]])
    assert g.gather(1, kiln.tensor([[0, 0], [1, 0]])).tolist() == [[1, 1], [4, 3]]
    assert kiln.zeros(2, 2).scatter(1, kiln.tensor([[0], [1]]), 5).tolist() == [[5, 0], [0, 5]]
    assert g.index_select(0, kiln.tensor([1, 1])).tolist() == [[3, 4], [3, 4]]
