"""kiln.autograd.functional, checkpoints and anomaly mode, beside PyTorch where it is installed."""

import pytest

import kiln


def function_of(lib):
    return lib.autograd.functional


def test_jacobian_and_hessian_structures(lib):
    functional = function_of(lib)
    x = lib.tensor([1.0, 2.0])
    y = lib.tensor([3.0])

    j = functional.jacobian(lambda a: a * a, x)
    assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    j = functional.jacobian(lambda a, b: a * b, (x, y))
    assert isinstance(j, tuple)
    assert [p.tolist() for p in j] == [[[3.0, 0.0], [0.0, 3.0]], [[1.0], [2.0]]]
    j = functional.jacobian(lambda a, b: (a * b, a.sum()), (x, y))
    assert j[1][0].tolist() == [1.0, 1.0] and j[1][1].tolist() == [0.0]
    h = functional.hessian(lambda a: (a * a * a).sum(), x)
    assert h.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    h = functional.hessian(lambda a, b: (a * b).sum(), (x, y))
    assert h[0][1].tolist() == [[1.0], [1.0]] and h[1][1].tolist() == [[0.0]]


def test_products(lib):
    functional = function_of(lib)
    x = lib.tensor([1.0, 2.0])
    v = lib.tensor([1.0, -1.0])

    y, product = functional.vjp(lambda a: a * a, x, v)
    assert y.tolist() == [1.0, 4.0] and product.tolist() == [2.0, -4.0]
    y, product = functional.jvp(lambda a: a * a.sum(), x, v)
    assert y.tolist() == [3.0, 6.0] and product.tolist() == [3.0, -3.0]
    y, product = functional.hvp(lambda a: (a**3).sum(), x, v)
    assert y.item() == 9 and product.tolist() == [6.0, -12.0]
    y, product = functional.vhp(lambda a: (a**3).sum(), x, v)
    assert product.tolist() == [6.0, -12.0]
    with pytest.raises(RuntimeError):
        functional.jacobian(lambda a: lib.ones(2), x, strict=True)


def test_checkpoint(lib):
    from importlib import import_module

    checkpoint = import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
    w = lib.tensor([2.0], requires_grad=True)
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    calls = []

    def f(a, factor, flag=False):
        calls.append(flag)
        return {"y": (a * w).exp() * factor, "n": 7}

    if lib is kiln:  # PyTorch takes no dict apart
        result = checkpoint(f, x, 3.0, flag=True)
        assert result["n"] == 7
        y = result["y"]
    else:
        y = checkpoint(lambda *a, **k: f(*a, **k)["y"], x, 3.0, flag=True, use_reentrant=False)
    assert calls == [True]
    y.sum().backward()
    assert calls == [True, True]
    expected = ((x * w).exp() * 3.0).sum()
    gx, gw = lib.autograd.grad(expected, (x, w))
    assert x.grad.tolist() == pytest.approx(gx.tolist())
    assert w.grad.tolist() == pytest.approx(gw.tolist())


def test_checkpoint_sequential():
    from kiln.utils.checkpoint import checkpoint_sequential

    net = kiln.nn.Sequential(*[kiln.nn.Linear(4, 4) for _ in range(5)])
    x = kiln.randn(3, 4, requires_grad=True)
    net(x).sum().backward()
    expected = [p.grad.tolist() for p in net.parameters()]
    net.zero_grad()
    checkpoint_sequential(net, 2, x).sum().backward()
    assert [p.grad.tolist() for p in net.parameters()] == expected
    with pytest.raises(ValueError, match="1 to 5 segments; got 6"):
        checkpoint_sequential(net, 6, x)


def test_anomaly_mode_shows_the_line_of_the_forward_op():
    def the_culprit(x):
        return x.sqrt()

    x = kiln.zeros(2, requires_grad=True)
    with kiln.autograd.detect_anomaly():
        y = (the_culprit(x) * kiln.zeros(2)).sum()
        with pytest.raises(RuntimeError, match="(?s)sqrt.*NaN.*the_culprit"):
            y.backward()
    assert not kiln.is_anomaly_enabled()
    y = (the_culprit(x) * kiln.zeros(2)).sum()
    y.backward()


def test_hook_after_accumulation_gets_the_same_object(lib):
    x = lib.ones(2, requires_grad=True)
    seen = []

    def hook(p):
        seen.append(p)
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * x + x).sum().backward()
    assert len(seen) == 1 and seen[0] is x and x.grad is None
    handle.remove()
    x.sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [1.0, 1.0]


def test_balanced_checkpointing():
    from kiln.utils.checkpoint import balanced_checkpointing

    w = kiln.randn(64, 64, requires_grad=True)
    x = kiln.randn(256, 64)

    def loss():
        y = kiln.nn.functional.gelu(x @ w)
        return (kiln.nn.functional.silu(y @ w) * y).sum()

    def kept():
        before = kiln.memory_stats()["bytes_in_use"]
        y = loss()
        return kiln.memory_stats()["bytes_in_use"] - before, y

    plain_bytes, y = kept()
    (plain,) = kiln.autograd.grad(y, [w])
    del y
    with balanced_checkpointing():
        balanced_bytes, y = kept()
        (balanced,) = kiln.autograd.grad(y, [w])
    assert kiln.equal(plain, balanced)
    assert balanced_bytes <= plain_bytes - 256 * 64 * 4  # what silu gave
