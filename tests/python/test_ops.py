"""Every op against PyTorch, values and gradients; where PyTorch is not, against what it gave."""

import pathlib
import re

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")


def numbers(*shape, low=-2.0, high=2.0, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape)


A = numbers(3, 4)
B = numbers(3, 4, seed=1)
POSITIVE = numbers(3, 4, low=0.3, high=3.0)
UNIT = numbers(3, 4, low=-0.9, high=0.9)
ABOVE_ONE = numbers(3, 4, low=1.1, high=3.0)
INDEX = np.array([[0, 2, 1, 0], [1, 1, 2, 2]])

# A name, the operands (arrays become tensors, and float arrays ask for gradients), the options. The
# same call is made of torch.<name> and kiln.<name>, and of the method where there is one.
CASES = [
    *[(name, (A,), {}) for name in (
        "neg negative abs absolute sign square floor ceil round trunc relu exp expm1 sin cos tan atan arctan"
        " sinh cosh tanh asinh erf sigmoid isnan isinf isfinite logical_not t ravel"
        " sum mean prod var std max min amax amin argmax argmin any all norm flatten squeeze"
    ).split()],
    *[(name, (POSITIVE,), {}) for name in "sqrt rsqrt reciprocal log log1p log2 log10".split()],
    *[(name, (UNIT,), {}) for name in "asin arcsin acos arccos atanh".split()],
    ("acosh", (ABOVE_ONE,), {}),
    *[(name, (A, B), {}) for name in (
        "add sub subtract mul multiply div divide true_divide maximum minimum atan2 eq ne not_equal gt"
        " greater ge greater_equal lt less le less_equal floor_divide remainder logical_and"
        " logical_or logical_xor allclose equal"
    ).split()],
    *[(name, (A, 1.5), {}) for name in (
        "add sub mul div floor_divide remainder eq ne gt ge lt le".split())],
    ("add", (A, B), {"alpha": 2}), ("sub", (A, B), {"alpha": 0.5}),
    ("div", (A, B), {"rounding_mode": "floor"}), ("div", (A, B), {"rounding_mode": "trunc"}),
    ("pow", (POSITIVE, 2.5), {}), ("pow", (POSITIVE, B), {}), ("pow", (2.0, A), {}),
    ("clamp", (A, -1.0, 0.5), {}), ("clamp", (A,), {"max": 0.3}), ("clip", (A, B), {}),
    ("matmul", (A, B.T), {}), ("mm", (A, B.T), {}), ("matmul", (A, B[0]), {}),
    ("bmm", (A.reshape(1, 3, 4), B.reshape(1, 4, 3)), {}), ("dot", (A[0], B[0]), {}),
    ("where", (A > 0, A, B), {}), ("where", (A > 0, A, 0.0), {}), ("where", (A > 0, 1.0, B), {}),
    *[(name, (A, 1), {}) for name in (
        "sum mean prod var std max min amax amin argmax argmin any all cumsum logsumexp softmax"
        " log_softmax squeeze unsqueeze unbind").split()],
    *[(name, (A,), {"dim": 0, "keepdim": True}) for name in (
        "sum mean prod var std max min amax amin argmax argmin any all logsumexp").split()],
    ("sum", (A,), {"dim": (0, 1)}), ("sum", (A,), {"dtype": "float32"}),
    ("mean", (A,), {"dim": (0, -1)}), ("var", (A,), {"dim": 1, "correction": 0}),
    ("var", (A,), {"unbiased": False}), ("std", (A,), {"dim": (0, 1), "correction": 2}),
    ("max", (A, B), {}), ("min", (A, B), {}),
    ("norm", (A,), {"p": 1}), ("norm", (A,), {"p": 3, "dim": 1}),
    ("norm", (A,), {"p": float("inf")}), ("norm", (A,), {"dim": 0, "keepdim": True}),
    ("reshape", (A, (2, 6)), {}), ("permute", (A, (1, 0)), {}), ("transpose", (A, 0, 1), {}),
    ("swapaxes", (A, 0, -1), {}), ("movedim", (A, 0, 1), {}), ("flip", (A, (0, 1)), {}),
    ("flatten", (A.reshape(1, 3, 4), 1), {}), ("unflatten", (A, 1, (2, 2)), {}),
    ("tile", (A, (2,)), {}), ("broadcast_to", (A[0], (3, 4)), {}),
    ("select", (A, 1, 2), {}), ("narrow", (A, 1, 1, 2), {}), ("split", (A, 2), {}),
    ("split", (A, [1, 2]), {}), ("split", (A, 3, 1), {}), ("chunk", (A, 2), {}),
    ("cat", ([A, B],), {}), ("concat", ([A, B], 1), {}), ("stack", ([A, B],), {"dim": 1}),
    ("broadcast_tensors", (A, B[0]), {}),
    ("index_select", (A, 1, np.array([0, 3, 3])), {}), ("gather", (A, 0, INDEX), {}),
    ("scatter", (A, 0, np.array([[0, 2, 1, 0]]), B[:1].copy()), {}), ("scatter_add", (A, 0, INDEX, B[:2].copy()), {}),
    ("index_add", (A, 0, np.array([0, 0]), B[:2]), {"alpha": 2}),
    ("masked_fill", (A, A > 0, 3.0), {}), ("masked_select", (A, A > 0), {}),
    ("nonzero", (A > 0,), {}), ("bitwise_and", (INDEX, INDEX + 1), {}),
    ("bitwise_or", (INDEX, INDEX + 1), {}), ("bitwise_xor", (INDEX, INDEX + 1), {}),
    ("bitwise_not", (INDEX,), {}),
    *[(name, (INDEX,), {}) for name in "sum prod max exp sqrt neg abs relu".split()],
    ("div", (INDEX, 2), {}), ("floor_divide", (INDEX, 2), {}), ("cumsum", (INDEX, 1), {}),
    ("eye", (3,), {}), ("arange", (1, 4, 0.5), {}), ("linspace", (0, 3, 7), {}), ("zeros", (2, 3), {}),
    ("full", ((2, 3), 1.5), {}), ("ones_like", (A,), {}), ("full_like", (A, 2), {}),
    ("zeros_like", (A,), {}),
]

FUNCTIONAL = [
    ("linear", (A, numbers(5, 4), numbers(5)), {}),
    ("linear", (A, numbers(5, 4)), {}),
    ("conv2d", (numbers(2, 4, 7, 6), numbers(6, 2, 3, 3), numbers(6)),
     {"stride": 2, "padding": (1, 0), "dilation": 1, "groups": 2}),
    ("conv2d", (numbers(2, 4, 7, 6), numbers(6, 4, 3, 3)), {"padding": "same"}),
    ("max_pool2d", (numbers(2, 3, 7, 6), 3), {"stride": 2, "padding": 1, "ceil_mode": True}),
    ("avg_pool2d", (numbers(2, 3, 7, 6), 2), {"padding": 1, "count_include_pad": False}),
    ("batch_norm", (numbers(4, 3, 5, 5), numbers(3), POSITIVE[:, 0].copy(), numbers(3), numbers(3)), {}),
    ("batch_norm", (numbers(4, 3), None, None), {"training": True}),
    ("layer_norm", (A, (4,), numbers(4), numbers(4)), {}),
    ("embedding", (INDEX, numbers(3, 2)), {}),
    ("dropout", (A, 0.5, False), {}),
    ("relu", (A,), {}), ("silu", (A,), {}), ("gelu", (A,), {}), ("gelu", (A,), {"approximate": "tanh"}),
    ("threshold", (A, 0.1, 20.0), {}), ("prelu", (A, numbers(4)), {}), ("sigmoid", (A,), {}),
    ("tanh", (A,), {}), ("softmax", (A,), {"dim": -1}), ("log_softmax", (A,), {"dim": 0}),
    ("cross_entropy", (A, np.array([0, 3, 2])), {}),
    ("cross_entropy", (A, np.array([0, 3, -100])), {"label_smoothing": 0.1, "reduction": "sum"}),
    ("cross_entropy", (A, np.array([0, 3, 2])), {"weight": POSITIVE[0].copy(), "reduction": "none"}),
    ("mse_loss", (A, B), {}), ("mse_loss", (A, B), {"reduction": "sum"}),
]  # fmt: skip

# PyTorch has no gradient of the first, and none for the running statistics of the second.
WITHOUT_GRADIENTS = {"floor_divide", "batch_norm"}


def convert(library, value, gradients):
    if isinstance(value, np.ndarray):
        x = library.tensor(value)
        return x.requires_grad_() if gradients and value.dtype == np.float64 else x
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [convert(library, v, gradients) for v in value]
    return value


def leaves(values):
    for v in values:
        if isinstance(v, list):
            yield from leaves(v)
        elif getattr(v, "requires_grad", False):
            yield v


def tensors_of(result):
    return result if isinstance(result, (tuple, list)) else [result]


def run(library, function, args, kwargs, name, gradients=True):
    kwargs = {
        k: getattr(library, v) if k == "dtype" else convert(library, v, False)
        for k, v in kwargs.items()
    }
    gradients = gradients and name not in WITHOUT_GRADIENTS
    args = [convert(library, a, gradients) for a in args]
    results = tensors_of(function(*args, **kwargs))
    values, scalar = [], None
    for r in results:
        if not hasattr(r, "detach"):
            values.append(r)
            continue
        values.append(r.detach().numpy())
        if r.requires_grad and r.is_floating_point():
            weights = np.linspace(0.5, 1.5, r.numel() or 1).reshape(tuple(r.shape) or ())
            part = (r * library.tensor(weights)).sum()
            scalar = part if scalar is None else scalar + part
    if scalar is not None:
        scalar.backward()
    return values, [None if x.grad is None else x.grad.numpy() for x in leaves(args)]


def check(got, expected):
    (values, grads), (other_values, other_grads) = got, expected
    assert len(values) == len(other_values) and len(grads) == len(other_grads)
    for g, e in zip(values, other_values):
        if isinstance(e, np.ndarray):
            assert g.dtype == e.dtype and g.shape == e.shape
            np.testing.assert_allclose(g, e, rtol=1e-6, atol=1e-9)
        else:
            assert g == e
    for g, e in zip(grads, other_grads):
        if e is None or g is None:
            assert (g is None or not g.any()) and (e is None or not e.any())
        else:
            np.testing.assert_allclose(g, e, rtol=1e-6, atol=1e-9)


def names(case):
    return f"{case[0]}-{','.join(case[2])}"


@needs_torch
@pytest.mark.parametrize("case", CASES, ids=names)
def test_functions_agree_with_torch(case):
    import torch

    name, args, kwargs = case
    expected = run(torch, getattr(torch, name), args, kwargs, name)
    check(run(kiln, getattr(kiln, name), args, kwargs, name), expected)
    if hasattr(kiln.Tensor, name) and isinstance(args[0], np.ndarray) and name != "where":
        check(run(kiln, getattr(kiln.Tensor, name), args, kwargs, name), expected)


@needs_torch
@pytest.mark.parametrize("case", FUNCTIONAL, ids=names)
def test_functional_agrees_with_torch(case):
    import torch

    name, args, kwargs = case
    expected = run(torch, getattr(torch.nn.functional, name), args, kwargs, name)
    check(run(kiln, getattr(kiln.nn.functional, name), args, kwargs, name), expected)


# In-place forms that no loop below can call: tested where they belong.
ELSEWHERE = {
    "requires_grad_", "share_memory_", "index_put_", "put_", "copy_", "zero_", "retain_grad_", "set_",
    "addmm_", "addmv_", "addr_", "addbmm_", "baddbmm_", "scatter_", "scatter_add_", "scatter_reduce_",
    "index_add_", "index_copy_", "index_fill_", "index_reduce_", "masked_scatter_", "masked_fill_",
    "fill_diagonal_", "bernoulli_", "resize_", "swapaxes_", "as_strided_", "squeeze_", "unsqueeze_",
    "t_", "transpose_", "swapdims_", "renorm_",
}  # fmt: skip


def test_in_place_methods_agree_with_the_plain_ones():
    """Each on floats, integers or bools, whichever it is for, with the arguments that fit."""
    floats, ints, bools = kiln.tensor(POSITIVE), kiln.tensor([[1, 2, 3]]), kiln.tensor([True, False])
    fractions = floats / (floats.max() * 2)
    choices = [
        (floats, ()), (floats, (2.0,)), (floats, (kiln.tensor(B),)), (fractions, ()),
        (ints, (2,)), (ints, (kiln.tensor([[2, 1, 1]]),)), (ints, ()), (bools, (~bools,)), (bools, ()),
        (floats, (0.5, 1.0)), (floats, (kiln.tensor(B), kiln.tensor(B))), (floats, (0,)),
        (floats, (2.0, kiln.tensor(B))), (floats + 1, (2,)),
    ]  # fmt: skip
    never = set()
    for name in dir(kiln.Tensor):
        plain = getattr(kiln.Tensor, name[:-1], None)
        if not name.endswith("_") or name.startswith("_") or plain is None or name in ELSEWHERE:
            continue
        tried = 0
        for x, args in choices:
            try:
                expected = plain(x, *args).to(x.dtype)
                y = x.clone()
                assert getattr(y, name)(*args) is y
            except (TypeError, RuntimeError, ValueError, IndexError):
                continue
            np.testing.assert_array_equal(y.numpy(), expected.numpy(), err_msg=name)
            tried += 1
        if not tried:
            never.add(name)
    assert not never


def test_views_and_forms_of_arguments():
    x = kiln.arange(24).reshape(2, 3, 4)
    assert x.permute(2, 0, 1).shape == x.permute((2, 0, 1)).shape == (4, 2, 3)
    assert x.view(6, -1).shape == x.view([6, 4]).shape == (6, 4)
    assert x[:, :1].expand(2, 3, 4).shape == x[:, :1].expand((-1, 3, -1)).shape == (2, 3, 4)
    assert x.repeat(2, 1, 1).shape == (4, 3, 4) and x.repeat((1, 1, 1, 2)).shape == (1, 2, 3, 8)
    assert x.view_as(kiln.zeros(24)).shape == (24,)
    assert isinstance(x.split(1), tuple) and x.max(0).values.shape == (3, 4)
    values, indices = x.min(dim=2)
    assert values.shape == indices.shape == (2, 3)
    assert x.sum((0, 2)).shape == x.sum([0, 2]).shape == (3,)
    with pytest.raises(RuntimeError, match="view"):
        x.transpose(0, 1).view(24)
    with pytest.raises(IndexError):
        x.sum(3)
    with pytest.raises(TypeError):
        x.sum("a")
    with pytest.raises(RuntimeError):
        x.reshape(5, -1)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_integers_change_in_place(lib, dtype):
    dtype = getattr(lib, dtype)
    x = lib.arange(12, dtype=dtype).reshape(3, 4)
    column = x[:, 1]
    before = x.data_ptr()
    x.add_(3)
    x -= 1
    x.mul_(lib.tensor([2, 3, 4, 5], dtype=dtype))
    x += x
    column.sub_(2)
    assert x.data_ptr() == before
    assert x.tolist() == [[8, 16, 32, 50], [24, 40, 64, 90], [40, 64, 96, 130 - (256 if dtype == lib.int8 else 0)]]
    assert column.tolist() == [16, 40, 64]
    with pytest.raises((RuntimeError, TypeError)):
        x.add_(0.5)


def test_bools_compare_with_bools(lib):
    x = lib.tensor([False, False, True, True])
    y = lib.tensor([[False, True, False, True], [True, True, False, False]])
    for name, f in {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }.items():
        for a, b in ((x, y), (y, x), (x, x)):
            got = f(a, b)
            assert got.dtype == lib.bool, name
            both = lib.broadcast_tensors(a, b)
            want = [f(int(p), int(q)) for p, q in zip(both[0].flatten().tolist(), both[1].flatten().tolist())]
            assert got.flatten().tolist() == want, name
