"""kiln.autograd.Function, beside PyTorch's where that is installed."""

import gc
import importlib
import weakref

import pytest

import kiln


def leaf(lib, *values):
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)


def scaled_exp(lib):
    class ScaledExp(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            assert ctx.needs_input_grad == (x.requires_grad, False)
            assert not lib.is_grad_enabled()
            y = (x * scale).exp()
            ctx.save_for_backward(y, None)
            ctx.scale = scale
            return y

        @staticmethod
        def backward(ctx, grad):
            y, nothing = ctx.saved_tensors
            assert nothing is None
            return grad * y * ctx.scale, None

    return ScaledExp


def test_derivatives_of_any_order(lib):
    x = leaf(lib, 0.0, 1.0)
    y = scaled_exp(lib).apply(x, 2.0)
    assert "ScaledExp" in y.grad_fn.name()
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = lib.autograd.grad(second.sum(), x)
    for power, value in enumerate((y, first, second, third)):
        assert lib.allclose(value, 2.0**power * (2 * x).exp())
    assert not scaled_exp(lib).apply(x.detach(), 2.0).requires_grad
    with lib.no_grad():
        assert not scaled_exp(lib).apply(x, 2.0).requires_grad


def test_setup_context_defaults_and_other_outputs(lib):
    class Split(lib.autograd.Function):
        @staticmethod
        def forward(x, k=3):
            return x * k, x.long(), "text"

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.k = inputs
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, grad, of_long, of_text):
            assert of_long is None and of_text is None
            return grad * ctx.k, None

    x = leaf(lib, 1.0, 2.0)
    scaled, integers, text = Split.apply(x)
    assert text == "text" and integers.tolist() == [1, 2] and not integers.requires_grad
    assert lib.autograd.grad(scaled.sum(), x)[0].tolist() == [3, 3]


def test_materialized_gradients_and_none(lib):
    class Two(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2, x + y

        @staticmethod
        def backward(ctx, a, b):
            assert b.tolist() == [0, 0]
            return a * 2, None

    x, y = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    a, _ = Two.apply(x, y)
    gx, gy = lib.autograd.grad(a.sum(), (x, y), allow_unused=True)
    assert gx.tolist() == [2, 2] and gy is None


def test_in_place_with_mark_dirty(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(lib, 1.0, 2.0)
    y = x * 3
    assert Double.apply(y) is y
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError):
        Double.apply(x)


def test_once_differentiable(lib):
    function = importlib.import_module(lib.__name__ + ".autograd.function")

    class Once(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @function.once_differentiable
        def backward(ctx, grad):
            assert not lib.is_grad_enabled()
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(lib, 3.0)
    assert lib.autograd.grad(Once.apply(x), x)[0].item() == 6
    w = leaf(lib, 1.0)
    (first,) = lib.autograd.grad(Once.apply(x) * w, x, create_graph=True)
    assert first.item() == 6
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_errors(lib):
    def run(result):
        class Bad(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x, number):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return result(grad)

        x = leaf(lib, 1.0, 2.0)
        Bad.apply(x, 1).sum().backward()

    run(lambda g: (g, None))
    with pytest.raises(RuntimeError, match="Bad"):
        run(lambda g: (g, g))
    with pytest.raises(RuntimeError, match="Bad"):
        run(lambda g: g)
    with pytest.raises(RuntimeError, match="Bad"):
        run(lambda g: (lib.ones(3), None))
    with pytest.raises((RuntimeError, TypeError), match="str"):
        run(lambda g: ("text", None))
    with pytest.raises(ZeroDivisionError):
        run(lambda g: 1 / 0)
    with pytest.raises(NotImplementedError):
        lib.autograd.Function.apply(lib.ones(1))


def test_a_write_into_what_was_saved_is_found(lib):
    x = leaf(lib, 1.0)
    y = scaled_exp(lib).apply(x, 2.0)
    with lib.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified"):
        y.sum().backward()


def test_nothing_lives_on():
    class Kept:
        pass

    kept = Kept()
    seen = weakref.ref(kept)

    class Holds(kiln.autograd.Function):
        @staticmethod
        def forward(ctx, x, kept):
            ctx.kept = kept
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    y = Holds.apply(leaf(kiln, 1.0), kept)
    del kept
    assert seen() is not None
    del y
    gc.collect()
    assert seen() is None


def test_writes_through_data_are_not_seen(lib):
    class Fill(lib.autograd.Function):
        """Its forward fills a tensor of its own piece by piece, as solvers of differential equations do."""

        @staticmethod
        def forward(ctx, x):
            out = lib.empty(3, dtype=x.dtype)
            for i in range(3):
                out.data[i] = x[i] * 2
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, grad):
            (out,) = ctx.saved_tensors
            return grad * out

    x = leaf(lib, 5.0, 5.0, 5.0)
    Fill.apply(x).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 10.0]

    y = x * 2
    z = y * y
    before = y._version
    y.data[1] = 100.0
    assert y._version == before
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == [40.0, 400.0, 40.0]

    own = y.data
    w = own * x
    own.add_(1)
    with pytest.raises(RuntimeError):
        w.sum().backward()


def test_writes_through_data_are_not_seen_after_a_capture():
    kiln.capture(lambda x: x * 2, kiln.ones(3))
    x = leaf(kiln, 1.0, 2.0)
    y = x * 2
    z = y * y
    y.data.fill_(3.0)
    assert y._version == 0
    z.sum().backward()
    assert x.grad.tolist() == [12.0, 12.0]
