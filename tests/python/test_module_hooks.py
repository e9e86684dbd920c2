"""Hooks of modules: each kind, its options, its order, its errors."""

import copy
import gc
import warnings
import weakref

import pytest

import kiln


def make(lib):
    layer = lib.nn.Linear(2, 2)
    with lib.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.fill_(0.0)
    return layer


class Args:
    """A module with keywords and several results."""

    def __new__(cls, lib):
        class Module(lib.nn.Module):
            def forward(self, x, scale=1, *, shift=0):
                return x * scale + shift

        return Module()


def test_forward_pre_hook(lib):
    layer = make(lib)
    x = lib.ones(1, 2)
    seen = []
    handle = layer.register_forward_pre_hook(lambda m, args: seen.append((m, args)))
    layer(x)
    assert seen[0][0] is layer and isinstance(seen[0][1], tuple) and seen[0][1][0] is x
    handle.remove()
    layer(x)
    assert len(seen) == 1
    with layer.register_forward_pre_hook(lambda m, args: args[0] * 3):
        assert layer(x).tolist() == [[6, 6]]
    with layer.register_forward_pre_hook(lambda m, args: (args[0] * 4,)):
        assert layer(x).tolist() == [[8, 8]]
    assert layer(x).tolist() == [[2, 2]]


def test_forward_pre_hook_with_kwargs(lib):
    m = Args(lib)
    x = lib.ones(1)

    def hook(module, args, kwargs):
        return (args[0] * 2,), {"scale": kwargs["scale"] + 1, "shift": 1}

    with m.register_forward_pre_hook(hook, with_kwargs=True):
        assert m(x, scale=2).tolist() == [7]
    with m.register_forward_pre_hook(lambda m, a, k: None, with_kwargs=True):
        assert m(x, shift=2).tolist() == [3]
    with m.register_forward_pre_hook(lambda m, a, k: 5, with_kwargs=True):
        with pytest.raises(RuntimeError, match="must return None or a tuple"):
            m(x)


def test_prepend_and_global_order(lib):
    layer = make(lib)
    order = []

    def note(name):
        return lambda *args: order.append(name)

    handles = [
        layer.register_forward_pre_hook(note("pre1")),
        layer.register_forward_pre_hook(note("pre0"), prepend=True),
        layer.register_forward_hook(note("post1")),
        layer.register_forward_hook(note("post0"), prepend=True),
        lib.nn.modules.module.register_module_forward_pre_hook(note("global pre"))
        if lib.__name__ == "torch"
        else lib.nn.register_module_forward_pre_hook(note("global pre")),
        lib.nn.modules.module.register_module_forward_hook(note("global post"))
        if lib.__name__ == "torch"
        else lib.nn.register_module_forward_hook(note("global post")),
    ]
    layer(lib.ones(1, 2))
    for handle in handles:
        handle.remove()
    assert order == ["global pre", "pre0", "pre1", "global post", "post0", "post1"]
    layer(lib.ones(1, 2))
    assert len(order) == 6


def test_forward_hook(lib):
    layer = make(lib)
    x = lib.ones(1, 2)
    with layer.register_forward_hook(lambda m, args, out: out + 1):
        with layer.register_forward_hook(lambda m, args, out: out * 10):
            assert layer(x).tolist() == [[30, 30]]
    m = Args(lib)
    seen = []
    with m.register_forward_hook(lambda m, a, k, o: seen.append((a, k, o)), with_kwargs=True):
        out = m(x, shift=2)
    assert seen[0][0][0] is x and seen[0][1] == {"shift": 2} and seen[0][2] is out


def test_forward_hooks_see_any_values(lib):
    class Many(lib.nn.Module):
        def forward(self, x, extra):
            return {"x": x, "extra": extra}

    m = Many()
    marker = object()
    seen = []
    with m.register_forward_hook(lambda m, a, o: seen.append((a, o))):
        out = m(lib.ones(1), marker)
    assert seen[0][0][1] is marker and seen[0][1] is out and out["extra"] is marker


def test_always_call(lib):
    class Fails(lib.nn.Module):
        def forward(self, x):
            raise ValueError("original")

    m = Fails()
    seen = []
    m.register_forward_hook(lambda m, a, o: seen.append("plain"))
    m.register_forward_hook(lambda m, a, o: seen.append(o), always_call=True)
    with pytest.raises(ValueError, match="original"):
        m(lib.ones(1))
    assert seen == [None]

    def bad(m, a, o):
        raise KeyError("silenced")

    m.register_forward_hook(bad, always_call=True)
    with pytest.warns(UserWarning, match="silenced"):
        with pytest.raises(ValueError, match="original"):
            m(lib.ones(1))
    # An error of a hook itself: the others that always want to be called are, once.
    ok = make(lib)
    calls = []
    ok.register_forward_hook(bad)
    ok.register_forward_hook(lambda m, a, o: calls.append(1), always_call=True)
    with pytest.raises(KeyError):
        ok(lib.ones(1, 2))
    assert calls == [1]


def test_full_backward_hook(lib):
    layer = make(lib)
    seen = []

    def hook(module, grad_input, grad_output):
        seen.append((module, grad_input, grad_output))

    layer.register_full_backward_hook(hook)
    x = lib.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    module, grad_input, grad_output = seen[0]
    assert module is layer and isinstance(grad_input, tuple) and isinstance(grad_output, tuple)
    assert grad_input[0].tolist() == [[2, 2]] and grad_output[0].tolist() == [[1, 1]]
    # no input requires a gradient: called for the output's
    layer(lib.ones(1, 2)).sum().backward()
    assert seen[1][1] == (None,) and seen[1][2][0].tolist() == [[1, 1]]
    # nothing requires one: never called
    layer.requires_grad_(False)
    assert not layer(lib.ones(1, 2)).requires_grad
    assert len(seen) == 2


def test_full_backward_hook_replaces_grad_input(lib):
    layer = make(lib)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x = lib.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [[20, 20]]


def test_full_backward_pre_hook(lib):
    layer = make(lib)
    order = []
    layer.register_full_backward_pre_hook(lambda m, go: order.append("second"))
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,), prepend=True)
    layer.register_full_backward_hook(lambda m, gi, go: order.append(go[0].tolist()))
    x = lib.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert order == ["second", [[3, 3]]] and x.grad.tolist() == [[6, 6]]


def test_backward_hooks_cover_positional_tensors_only(lib):
    class Two(lib.nn.Module):
        def forward(self, x, n, y=None):
            return x * n, y * 2

    m = Two()
    seen = []
    m.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x = lib.ones(1, requires_grad=True)
    y = lib.ones(1, requires_grad=True)
    a, b = m(x, 3, y=y)
    (a + b).sum().backward()
    grad_input, grad_output = seen[0]
    assert len(grad_input) == 2 and grad_input[1] is None and grad_input[0].tolist() == [3]
    assert [g.tolist() for g in grad_output] == [[1], [1]] and y.grad.tolist() == [2]


def test_results_under_full_backward_hooks_are_not_to_be_written(lib):
    layer = make(lib)
    layer.register_full_backward_hook(lambda m, gi, go: None)
    out = layer(lib.ones(1, 2, requires_grad=True))
    with pytest.raises(RuntimeError):
        out.add_(1)


def test_callers_tensor_is_not_touched(lib):
    layer = make(lib)
    layer.register_full_backward_hook(lambda m, gi, go: None)
    x = lib.ones(1, 2, requires_grad=True)
    layer(x)
    assert x.is_leaf and x.grad_fn is None


def test_mixing_kinds_of_backward_hooks_is_an_error(lib):
    layer = make(lib)
    layer.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.raises(RuntimeError):
        layer.register_backward_hook(lambda m, gi, go: None)
    other = make(lib)
    other.register_backward_hook(lambda m, gi, go: None)
    with pytest.raises(RuntimeError):
        other.register_full_backward_hook(lambda m, gi, go: None)


def test_deprecated_backward_hook(lib):
    layer = make(lib)
    seen = []
    layer.register_backward_hook(lambda m, gi, go: seen.append(go[0].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer(lib.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [[[1, 1]]]


def test_errors_in_hooks_reach_the_caller(lib):
    layer = make(lib)
    layer.register_full_backward_hook(lambda m, gi, go: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        layer(lib.ones(1, 2, requires_grad=True)).sum().backward()
    other = make(lib)
    other.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError):
        other(lib.ones(1, 2, requires_grad=True)).sum().backward()


def test_hooks_on_a_subclass_with_children(lib):
    net = lib.nn.Sequential(make(lib), lib.nn.ReLU())
    order = []
    net.register_forward_hook(lambda *a: order.append("net"))
    net[0].register_forward_hook(lambda *a: order.append("0"))
    net(lib.ones(1, 2))
    assert order == ["0", "net"]


def test_a_hook_may_remove_itself_or_add_others(lib):
    layer = make(lib)
    calls = []

    def once(m, args, out):
        calls.append("once")
        handle.remove()
        layer.register_forward_hook(lambda *a: calls.append("later"))

    handle = layer.register_forward_hook(once)
    layer(lib.ones(1, 2))
    layer(lib.ones(1, 2))
    assert calls == ["once", "later"]


def test_modules_with_hooks_on_themselves_are_collected(lib):
    layer = make(lib)
    layer.register_forward_hook(lambda m, a, o: layer and None)
    layer.register_full_backward_hook(lambda m, gi, go: layer and None)
    layer(lib.ones(1, 2))
    alive = weakref.ref(layer)
    del layer
    gc.collect()
    assert alive() is None


def test_backward_hooks_of_a_module_that_nobody_else_holds(lib):
    nn = lib.nn.modules.module if lib.__name__ == "torch" else lib.nn
    called = []
    handle = nn.register_module_full_backward_hook(lambda *a: called.append("global"))
    try:
        layer = make(lib)
        layer.register_full_backward_hook(lambda *a: called.append("own"))
        layer.register_full_backward_pre_hook(lambda *a: called.append("pre"))
        alive = weakref.ref(layer)
        loss = layer(lib.ones(1, 2, requires_grad=True)).sum()
        del layer
        gc.collect()
        assert alive() is not None
        loss.backward()
        assert called == ["pre", "global", "own"]
    finally:
        handle.remove()
    del loss
    gc.collect()
    assert alive() is None


def test_global_backward_hooks(lib):
    nn = lib.nn.modules.module if lib.__name__ == "torch" else lib.nn
    layer = make(lib)
    order = []
    handles = [
        layer.register_full_backward_hook(lambda *a: order.append("own")),
        nn.register_module_full_backward_hook(lambda *a: order.append("global")),
        layer.register_full_backward_pre_hook(lambda *a: order.append("own pre")),
        nn.register_module_full_backward_pre_hook(lambda *a: order.append("global pre")),
    ]
    layer(lib.ones(1, 2, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    assert order == ["global pre", "own pre", "global", "own"]


# ---- Hooks of registrations


def test_hooks_of_registrations(lib):
    nn, place = lib.nn, lib.nn.modules.module
    seen = []

    def watch(kind):
        return lambda module, name, value: seen.append(
            (kind, type(module).__name__, name, value is not None)
        )

    handles = [
        getattr(place, f"register_module_{kind}_registration_hook")(watch(kind))
        for kind in ("parameter", "buffer", "module")
    ]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(lib.ones(1))
            self.b = nn.ReLU()
            self.register_buffer("c", lib.ones(1))
            self.register_parameter("d", None)
            self.register_buffer("e", None)
            self.add_module("f", None)
            self.g = nn.Buffer(lib.ones(1))
            self.c = lib.zeros(1)
            self.b = None

    def made(make):
        seen.clear()
        make()
        return [(kind, name, there) for kind, _, name, there in seen]

    try:
        assert made(Net) == [
            ("parameter", "a", True), ("module", "b", True), ("buffer", "c", True),
            ("buffer", "e", False), ("module", "f", False), ("buffer", "g", True),
            ("buffer", "c", True), ("module", "b", False),
        ]  # fmt: skip
        weight, bias = ("parameter", "weight", True), ("parameter", "bias", True)
        assert made(lambda: nn.Linear(2, 2, bias=False)) == [weight]
        assert made(lambda: nn.BatchNorm1d(2)) == [weight, bias] + [
            ("buffer", name, True) for name in ("running_mean", "running_var", "num_batches_tracked")
        ]
        assert made(lambda: nn.ModuleList([nn.ReLU()])) == [("module", "0", True)]
        layer = nn.LSTM(2, 2)
        assert made(lambda: copy.deepcopy(layer)) == []
    finally:
        for handle in handles:
            handle.remove()
    assert made(lambda: nn.Linear(2, 2)) == []


def test_hooks_of_registrations_may_replace(lib):
    nn, place = lib.nn, lib.nn.modules.module
    with place.register_module_module_registration_hook(lambda module, name, value: nn.Tanh()):
        assert isinstance(nn.Sequential(nn.ReLU())[0], nn.Tanh)
    module = nn.Module()
    with place.register_module_parameter_registration_hook(
        lambda module, name, value: nn.Parameter(value.detach() + 1)
    ):
        module.p = nn.Parameter(lib.ones(1))
    with place.register_module_buffer_registration_hook(lambda module, name, value: value * 3):
        module.register_buffer("b", lib.ones(1))
    assert module.p.item() == 2 and module.b.item() == 3


def test_hooks_of_registrations_that_give_something_else():
    place = kiln.nn.modules.module
    for kind in ("parameter", "buffer", "module"):
        register = getattr(place, f"register_module_{kind}_registration_hook")
        with register(lambda module, name, value: 3):
            with pytest.raises(TypeError, match=f"expected a {kind} or None"):
                kiln.nn.Sequential(kiln.nn.BatchNorm1d(2))
