"""kiln.autograd.functional, checkpoints and anomaly mode, beside PyTorch where it is installed."""

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH


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


# ---- Dual tensors


def dual_cases(lib, fw):
    """Of one library: results as lists, to be compared with the other's."""
    rng = np.random.default_rng(5)
    x, t, w = (lib.from_numpy(rng.normal(size=(3, 4))) for _ in range(3))
    z = lib.complex(x, w)
    w.requires_grad_()
    found = {}

    def keep(name, result):
        primal, tangent = result
        parts = [None if p is None else p.detach().numpy() for p in (primal, tangent)]
        found[name] = (parts, primal.requires_grad, tangent is not None and tangent.requires_grad)

    with fw.dual_level() as level:
        found["level"] = level
        dual = fw.make_dual(x, t)
        keep("dual", fw.unpack_dual(dual))
        keep("function", fw.unpack_dual((dual.sin() * dual).cumsum(0)))
        keep("weights", fw.unpack_dual(dual @ w.mT))
        keep("argmax", fw.unpack_dual(dual.argmax(1)))
        keep("plain", fw.unpack_dual(x))
        keep("other", fw.unpack_dual(w * 2))
        keep("primal that is recorded", fw.unpack_dual(fw.make_dual(w, t) ** 2))
        keep("tangent that is recorded", fw.unpack_dual(fw.make_dual(x, w) * 3))
        keep("constant", fw.unpack_dual(lib.zeros_like(dual)))
        keep("abs of complex", fw.unpack_dual(fw.make_dual(z, lib.complex(t, x)).abs()))
        keep("complex", fw.unpack_dual(fw.make_dual(z, lib.complex(t, x)) ** 2 * 1j))
        written = fw.make_dual(x.clone(), t.clone())
        written *= 3
        written[0] = 0
        keep("in place", fw.unpack_dual(written))
        with lib.enable_grad():
            tangent = fw.unpack_dual(dual * w**2).tangent
        (found["gradient of the tangent"],) = [
            g.numpy() for g in lib.autograd.grad(tangent.sum(), w)
        ]
    with lib.no_grad(), fw.dual_level():
        keep("no_grad outside", fw.unpack_dual(fw.make_dual(x, t) * w))
    return found


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_dual_tensors_are_pytorchs():
    import torch

    import kiln.autograd.forward_ad as mine
    import torch.autograd.forward_ad as theirs

    got, expected = dual_cases(kiln, mine), dual_cases(torch, theirs)
    assert got.keys() == expected.keys()
    for name in got:
        if name in ("level", "gradient of the tangent"):
            np.testing.assert_allclose(got[name], expected[name])
            continue
        (primal, tangent), *flags = got[name]
        (their_primal, their_tangent), *their_flags = expected[name]
        assert flags == their_flags, name
        np.testing.assert_allclose(primal, their_primal, err_msg=name)
        if their_tangent is None:
            # A constant has no tangent in either library.
            assert tangent is None, name
        else:
            np.testing.assert_allclose(tangent, their_tangent, err_msg=name)


def test_dual_parameters_of_a_module():
    import kiln.autograd.forward_ad as fw

    kiln.manual_seed(0)
    net = kiln.nn.Sequential(kiln.nn.Linear(3, 4), kiln.nn.Tanh(), kiln.nn.Linear(4, 2)).double()
    x = kiln.randn(5, 3, dtype=kiln.float64)
    values = {name: p.detach() for name, p in net.named_parameters()}
    along = {name: kiln.randn_like(p) for name, p in values.items()}
    with fw.dual_level():
        duals = {name: fw.make_dual(p, along[name]) for name, p in values.items()}
        y, tangent = fw.unpack_dual(kiln.func.functional_call(net, duals, x))
    names = list(values)

    def f(*given):
        return kiln.func.functional_call(net, dict(zip(names, given)), x)

    want, want_tangent = kiln.func.jvp(f, tuple(values.values()), tuple(along.values()))
    assert kiln.equal(y, want) and kiln.allclose(tangent, want_tangent) and not y.requires_grad


def test_dual_tensors_that_are_wrong():
    import kiln.autograd.forward_ad as fw

    x = kiln.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, x)
    assert fw.unpack_dual(x).tangent is None
    with pytest.raises(RuntimeError, match="no level"):
        fw.exit_dual_level()
    level = fw.enter_dual_level()
    try:
        with pytest.raises(RuntimeError, match="Nested"):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError, match="size of the primal"):
            fw.make_dual(x, kiln.ones(3))
        with pytest.raises(RuntimeError, match="dtype"):
            fw.make_dual(x, x.double())
        with pytest.raises(ValueError, match="floating point"):
            fw.make_dual(x.long(), x)
        with pytest.raises(TypeError, match="tensor"):
            fw.make_dual(1, x)
        with pytest.raises(TypeError, match="tensor"):
            fw.unpack_dual([x])
        dual = fw.make_dual(x, x)
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fw.make_dual(dual, x)
        with kiln.no_grad():
            y = dual * 2
            with pytest.raises(RuntimeError, match="no_grad"):
                fw.unpack_dual(y)
    finally:
        fw.exit_dual_level(level=level)
    with fw.dual_level():
        assert fw.unpack_dual(dual * 2).tangent is None
    with kiln.no_grad():
        with fw.dual_level():
            assert kiln.is_grad_enabled()
        assert not kiln.is_grad_enabled()
