"""Ops of users' own: each test runs with PyTorch, too, where it is installed."""

import importlib
import itertools

import numpy as np
import pytest

import kiln

_names = itertools.count()


def library(lib):
    return importlib.import_module(f"{lib.__name__}.library")


def name_of(what):
    return f"kilntests::{what}{next(_names)}"


def sine_of(lib):
    def sine(x, factor=1.0):
        return lib.from_numpy(np.sin(x.detach().numpy()) * factor).to(x.dtype)

    sine.__annotations__ = {"x": lib.Tensor, "factor": float, "return": lib.Tensor}
    return library(lib).custom_op(name_of("sine"), sine, mutates_args=())


def test_values_and_gradients(lib):
    sine = sine_of(lib)

    def setup(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.save_for_backward(x)
        assert ctx.needs_input_grad[0]

    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x.cos() * ctx.factor, None

    sine.register_autograd(backward, setup_context=setup)
    x = lib.tensor([0.5, -1.0], dtype=lib.float64, requires_grad=True)
    y = sine(x, factor=2.0)
    np.testing.assert_allclose(y.detach().numpy(), 2 * np.sin([0.5, -1.0]))
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos([0.5, -1.0]))
    assert lib.autograd.gradcheck(lambda x: sine(x, 3.0), (x,))
    assert not sine(x.detach()).requires_grad
    with lib.no_grad():
        assert not sine(x).requires_grad


def test_without_a_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    y = sine_of(lib)(x)
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()


def test_meta(lib):
    sine = sine_of(lib)
    x = lib.ones(3, device="meta")
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        sine(x)
    sine.register_fake(lambda x, factor=1.0: lib.empty_like(x))
    y = sine(x)
    assert y.device.type == "meta" and y.shape == (3,)


def test_lists_and_several_results(lib):
    def pair(xs, y):
        return xs[0] * 2 + xs[1] * 3 + y, y * 5

    pair.__annotations__ = {
        "xs": list[lib.Tensor], "y": lib.Tensor, "return": tuple[lib.Tensor, lib.Tensor],
    }  # fmt: skip
    op = library(lib).custom_op(name_of("pair"), pair, mutates_args=())
    op.register_autograd(lambda ctx, a, b: ([a * 2, a * 3], a + b * 5))
    a, b, c = (lib.ones(2, requires_grad=True) for _ in range(3))
    first, second = op([a, b], c)
    (first.sum() + second.sum()).backward()
    assert [x.grad.tolist() for x in (a, b, c)] == [[2, 2], [3, 3], [6, 6]]


def test_writes(lib):
    def add_one(x):
        x.add_(1)

    add_one.__annotations__ = {"x": lib.Tensor, "return": None}
    op = library(lib).custom_op(name_of("add_one"), add_one, mutates_args={"x"})
    x = lib.zeros(2)
    assert op(x) is None and x.tolist() == [1, 1]


def test_kernels_and_decorators(lib):
    def which(x):
        return x + 1

    which.__annotations__ = {"x": lib.Tensor, "return": lib.Tensor}
    name = name_of("which")
    op = library(lib).custom_op(name, which, mutates_args=(), device_types="cpu")

    @op.register_kernel("cpu")
    def _(x):
        return x + 2

    assert op(lib.zeros(1)).item() == 2
    library(lib).register_kernel(name, "cpu", lambda x: x + 3)
    assert op(lib.zeros(1)).item() == 3
    space, _, last = name.partition("::")
    assert getattr(getattr(lib.ops, space), last)(lib.zeros(1)).item() == 3
    with pytest.raises(AttributeError, match="not_there"):
        getattr(lib.ops, space).not_there  # noqa: B018


def test_schemas(lib):
    def f(x, xs, n, scale=2.0, name="a", maybe=None, *, flag=True):
        return x

    f.__annotations__ = {
        "x": lib.Tensor, "xs": list[lib.Tensor], "n": int, "scale": float, "name": str,
        "maybe": lib.Tensor | None, "flag": bool, "return": lib.Tensor,
    }  # fmt: skip
    text = library(lib).infer_schema(f, mutates_args=())
    assert text == (
        '(Tensor x, Tensor[] xs, SymInt n, float scale=2.0, str name="a", Tensor? maybe=None, *, '
        "bool flag=True) -> Tensor"
    )
    f.__annotations__["return"] = tuple[lib.Tensor, int]
    assert library(lib).infer_schema(f, mutates_args={"x"}).startswith("(Tensor(a0!) x, ")
    del f.__annotations__["n"]
    with pytest.raises(ValueError, match="Parameter n must have a type annotation"):
        library(lib).infer_schema(f, mutates_args=())
    f.__annotations__["n"] = object
    with pytest.raises(ValueError, match="unsupported type"):
        library(lib).infer_schema(f, mutates_args=())


def test_wrong_calls():
    def f(x: kiln.Tensor) -> kiln.Tensor:
        return x.clone()

    for name in ("f", "a::", "::f", "a::b::c", "a b::c"):
        with pytest.raises(ValueError, match="expected a name such as"):
            kiln.library.custom_op(name, f, mutates_args=())
    with pytest.raises(ValueError, match="mutates_args has"):
        kiln.library.custom_op("t::f", f, mutates_args={"y"})
    with pytest.raises(ValueError, match="there is no op"):
        kiln.library.register_fake("t::none", f)
    with pytest.raises(TypeError, match="expected an op"):
        kiln.library.register_fake(f, f)
    op = kiln.library.custom_op("t::g", f, mutates_args=(), device_types=["cuda"])
    with pytest.raises(kiln.errors.DeviceError, match="no kernel for cpu; expected cuda"):
        op(kiln.ones(1))
    with pytest.raises(TypeError):
        op()
    op = kiln.library.custom_op("t::h", f, mutates_args=())
    op.register_autograd(lambda ctx, gradient: (gradient, None))
    with pytest.raises(RuntimeError, match="for each of the 1 inputs; backward gave 2"):
        op(kiln.ones(1, requires_grad=True)).backward()
    op = kiln.library.custom_op("t::w", f, mutates_args={"x"})
    with pytest.raises(RuntimeError, match="writes to 'x', which requires a gradient"):
        op(kiln.ones(1, requires_grad=True))
