"""When a compiled call may replay what was captured, and when it must capture anew."""

import enum
import gc
import warnings
import weakref
from collections import OrderedDict, namedtuple

import pytest

import kiln
from kiln import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale = 1.5
        self.name = "plain"

    def forward(self, x):
        return self.layer(x) * self.scale + (1 if self.name == "shifted" else 0)


def captured(f):
    return f.counts()["captured"]


def test_attributes_count_by_value():
    net, x = Scaled(), kiln.randn(2, 3)
    fast = kiln.compile(net)
    fast(x)
    net.scale = float("1.5")  # another object
    net.name = "".join(["pl", "ain"])
    assert kiln.equal(fast(x), net(x)) and captured(fast) == 1
    for change in ({"scale": 2.5}, {"name": "shifted"}, {"scale": 0.0}, {"scale": -0.0}):
        vars(net).update(change)
        before = captured(fast)
        assert str(fast(x).tolist()) == str(net(x).tolist())
        assert captured(fast) == before + 1
    net.scale = float("nan")
    fast(x)
    before = captured(fast)
    net.scale = float("nan")
    assert kiln.isnan(fast(x)).all() and captured(fast) == before


def test_parts_that_change_places():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU())
    fast, x = kiln.compile(net), kiln.randn(2, 3)
    fast(x)
    net[0], net[2] = net[2], net[0]
    assert kiln.equal(fast(x), net(x))
    net.append(nn.Sigmoid())
    assert kiln.equal(fast(x), net(x))
    del net[4], net[3]
    assert kiln.equal(fast(x), net(x))
    net[0].bias = None
    assert kiln.equal(fast(x), net(x))
    assert captured(fast) == 5


def test_hooks_of_all_modules_are_seen():
    net, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), kiln.randn(2, 3)
    fast = kiln.compile(net)
    plain = fast(x)
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1)
    try:
        hooked = net(x)
        assert not kiln.equal(hooked, plain)
        assert kiln.equal(fast(x), hooked)
    finally:
        handle.remove()
    assert kiln.equal(fast(x), plain)


def test_a_compiled_module_inside_another():
    inner = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    outer = nn.Sequential(nn.Linear(3, 3), nn.Identity())
    outer[1] = kiln.compile(inner)
    fast, x = kiln.compile(outer), kiln.randn(4, 3)
    outer.eval()
    inner.eval()
    assert kiln.equal(fast(x), outer(x))
    inner.train()
    kiln.manual_seed(3)
    expected = inner(outer[0](x))
    kiln.manual_seed(3)
    assert kiln.equal(fast(x), expected)
    closure = kiln.compile(lambda x: outer[1](x))
    assert kiln.equal(closure(x), closure(x)) is False  # dropout draws new numbers
    inner.eval()
    assert kiln.equal(closure(x), inner(x))


class Colour(enum.IntEnum):
    red = 1
    blue = 2


Pair = namedtuple("Pair", "a b")


def test_structures_of_arguments():
    @kiln.compile(options={"max_variants": 32})
    def f(values, how=None):
        items = values.values() if isinstance(values, dict) else values
        total = sum(x * (i + 1) for i, x in enumerate(items))
        return total * {None: 1, Colour.red: 2, Colour.blue: 3}.get(how, 4)

    x, y = kiln.randn(3), kiln.randn(3)
    calls = [
        (([x, y],), x + 2 * y),
        (((x, y),), x + 2 * y),
        ((Pair(x, y),), x + 2 * y),
        (({"a": x, "b": y},), x + 2 * y),
        (({"b": y, "a": x},), y + 2 * x),
        ((OrderedDict(a=x, b=y),), x + 2 * y),
        (([x],), x),
        (([x, y, x],), 4 * x + 2 * y),
        (([x, y], Colour.red), 2 * (x + 2 * y)),
        (([x, y], Colour.blue), 3 * (x + 2 * y)),
        (([x, y], 1), 2 * (x + 2 * y)),
        (([x, y], kiln.Size([2, 3])), 4 * (x + 2 * y)),
        (([x, y], -0.0), 4 * (x + 2 * y)),
        (([x, y], 0.0), 4 * (x + 2 * y)),
    ]
    for times in range(1, 3):
        for args, expected in calls:
            kiln.testing.assert_close(f(*args), expected)
        assert f.counts()["captured"] == len(calls) and f.counts()["eager"] == 0, times
    moved = OrderedDict(a=x, b=y)
    moved.move_to_end("a")
    kiln.testing.assert_close(f(moved), y + 2 * x)
    assert f.counts()["captured"] == len(calls) + 1


def test_objects_and_modules_as_arguments():
    class Options:
        factor = 2.0

    f = kiln.compile(lambda net, x, options: net(x) * options.factor)
    net, x, options = nn.Linear(3, 2), kiln.randn(4, 3), Options()
    for _ in range(2):
        assert kiln.equal(f(net, x, options), net(x) * 2.0)
    assert captured(f) == 1
    assert kiln.equal(f(net, x, Options()), net(x) * 2.0)
    net.weight = nn.Parameter(kiln.randn(2, 3))
    assert kiln.equal(f(net, x, options), net(x) * 2.0)
    assert captured(f) == 3


def test_a_number_that_changes_in_each_call_is_told():
    net, x = Scaled(), kiln.randn(2, 3)
    fast = kiln.compile(net)
    with pytest.warns(UserWarning, match="8 variants, and none fits this call"):
        for step in range(10):
            net.scale = 1.0 + step
            assert kiln.equal(fast(x), net(x))
    assert fast.counts() == {"variants": 8, "captured": 8, "replayed": 0, "eager": 2}


def test_what_a_guard_holds_is_freed():
    net = Scaled()
    net.compile()
    net(kiln.randn(2, 3))
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


class Looked(nn.Module):
    """Keeps what it computed on the way to be looked at."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.seen = None
        self.register_buffer("last", kiln.zeros(3))

    def forward(self, x):
        self.seen = self.layer(x).softmax(-1)
        self.last = self.seen.detach().mean(0)
        return self.seen * 2


def test_attributes_that_a_function_writes_are_written_by_replays():
    net = Looked()
    fast = kiln.compile(net)
    for _ in range(6):
        x = kiln.randn(4, 3)
        expected = net.layer(x).softmax(-1)
        kiln.testing.assert_close(fast(x), expected * 2)
        kiln.testing.assert_close(net.seen, expected)
        kiln.testing.assert_close(net.last, expected.mean(0))
        net.zero_grad()
        net.seen.square().sum().backward()  # its history is that of the graph
        got = net.layer.weight.grad
        (reference,) = kiln.autograd.grad(expected.square().sum(), [net.layer.weight])
        kiln.testing.assert_close(got, reference)
    # One with None before, one with a tensor.
    assert fast.counts() == {"variants": 2, "captured": 2, "replayed": 4, "eager": 0}
    assert list(net.state_dict()) == ["last", "layer.weight", "layer.bias"]
    y = kiln.randn(2, 3)  # another shape
    for _ in range(2):
        kiln.testing.assert_close(fast(y), net.layer(y).softmax(-1) * 2)
        assert net.seen.shape == (2, 3)


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(3, 3)
        self.state = kiln.zeros(3)

    def forward(self, x):
        self.state = kiln.tanh(self.cell(x) + self.state)
        return self.state


def test_attributes_that_a_function_reads_before_it_writes_them_are_inputs():
    net, twin = Remembering(), Remembering()
    twin.load_state_dict(net.state_dict())
    fast = kiln.compile(net)
    with kiln.no_grad():
        for step in range(12):
            if step == 6:
                net.state, twin.state = kiln.full((3,), 2.0), kiln.full((3,), 2.0)
            x = kiln.randn(3)
            kiln.testing.assert_close(fast(x), twin(x))
            kiln.testing.assert_close(net.state, twin.state)
    # The first call shows that the state is read; the second is captured with it as an input.
    assert fast.counts() == {"variants": 1, "captured": 1, "replayed": 10, "eager": 0}


class Stateful(nn.Module):
    """A recurrent network that goes on where the last call ended, as in training on long texts."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)
        self.register_buffer("steps", kiln.zeros(()))
        self.h = self.c = None

    def forward(self, x):
        given = None if self.h is None else (self.h, self.c)
        out, (h, c) = self.rnn(x, given)
        self.h, self.c = h.detach(), c.detach()
        self.steps = self.steps + 1
        return out * self.steps


@pytest.mark.parametrize("fullgraph", [False, True])
def test_states_of_recurrent_networks(fullgraph):
    net, twin = Stateful(), Stateful()
    twin.load_state_dict(net.state_dict())
    fast = kiln.compile(net, fullgraph=fullgraph)
    optimizers = [kiln.optim.SGD(m.parameters(), lr=0.1) for m in (net, twin)]

    def check(x):
        outs = []
        for call, model, optimizer in zip((fast, twin), (net, twin), optimizers, strict=True):
            optimizer.zero_grad()
            outs.append(call(x))
            if model.training:
                outs[-1].square().sum().backward()
                optimizer.step()
        kiln.testing.assert_close(*outs)
        for (name, a), b in zip(net.state_dict().items(), twin.state_dict().values(), strict=True):
            kiln.testing.assert_close(a, b, msg=name)
        kiln.testing.assert_close(net.h, twin.h)
        kiln.testing.assert_close(net.c, twin.c)

    for _ in range(8):
        check(kiln.randn(2, 5, 3))
    assert fast.counts()["replayed"] >= 5
    for model in (net, twin):
        model.h = model.c = None  # a new text
    check(kiln.randn(2, 5, 3))
    for model in (net, twin):
        model.eval()
        model.h = model.c = None
    with kiln.no_grad():
        for _ in range(4):
            check(kiln.randn(1, 2, 3))  # another shape, of the state too
    before = fast.counts()["captured"]
    for model in (net, twin):
        model.train()
        model.h, model.c = (kiln.ones(1, 2, 4) for _ in range(2))
    for _ in range(3):
        check(kiln.randn(2, 5, 3))
    assert fast.counts()["captured"] == before


def test_a_state_with_a_history():
    """Each call's gradient goes through the calls before it."""
    net, twin = Remembering(), Remembering()
    twin.load_state_dict(net.state_dict())
    fast = kiln.compile(net)
    for _ in range(3):
        gradients = []
        xs = [kiln.randn(3) for _ in range(4)]
        for call, model in ((fast, net), (twin, twin)):
            model.state = kiln.zeros(3)
            sum(call(x).sum() for x in xs).backward()
            gradients.append(model.cell.weight.grad)
            model.zero_grad()
        kiln.testing.assert_close(*gradients)
    assert fast.counts()["replayed"] >= 6


class Swapping(nn.Module):
    """Two attributes that change places, and a third with the same tensor as the first."""

    def __init__(self):
        super().__init__()
        self.a, self.b = kiln.ones(2), kiln.full((2,), 2.0)
        self.c = self.a

    def forward(self, x):
        self.a, self.b, self.c = self.b, self.a + x, self.b
        return self.a - self.b + self.c


def test_attributes_that_change_places():
    net, twin = Swapping(), Swapping()
    fast = kiln.compile(net)
    for _ in range(8):
        x = kiln.randn(2)
        kiln.testing.assert_close(fast(x), twin(x))
        for name in "abc":
            kiln.testing.assert_close(getattr(net, name), getattr(twin, name))
        assert net.a is net.c


class Masked(nn.Module):
    """Makes its mask when the one that it has does not fit."""

    def __init__(self):
        super().__init__()
        self.mask = kiln.ones(1)

    def forward(self, x):
        if self.mask.shape != x.shape:
            self.mask = kiln.full_like(x, 2.0)
        return x * self.mask


def test_attributes_that_some_calls_write_and_others_read():
    net, twin = Masked(), Masked()
    fast = kiln.compile(net)
    w = kiln.ones(3, requires_grad=True)

    def check(x, with_gradient):
        with kiln.set_grad_enabled(with_gradient):
            kiln.testing.assert_close(fast(x), twin(x))
            kiln.testing.assert_close(net.mask, twin.mask)

    for value in (5.0, 7.0):
        check(kiln.randn(3), False)  # writes it
        check(kiln.randn(3), False)
        check(w * kiln.randn(3), True)  # another mode: reads it
        net.mask, twin.mask = kiln.full((3,), value), kiln.full((3,), value)
        check(w * kiln.randn(3), True)
        check(kiln.randn(4), False)
        check(kiln.randn(3), False)
        check(w * kiln.randn(3), True)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = kiln.zeros(())

    def forward(self, x):
        self.calls += 1
        self.seen = x.sum()
        return x * self.calls


def test_numbers_that_a_function_changes_count():
    net = Counting()
    fast = kiln.compile(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(1, 12):
            x = kiln.randn(2)
            kiln.testing.assert_close(fast(x), x * call)
            kiln.testing.assert_close(net.seen, x.sum())


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_weights_that_hooks_compute(norm, training):
    def make():
        kiln.manual_seed(0)
        return nn.Sequential(norm(nn.Linear(4, 5)), nn.ReLU(), norm(nn.Linear(5, 2)))

    net, twin = make().train(training), make().train(training)
    fast = kiln.compile(net)
    optimizers = [kiln.optim.SGD(m.parameters(), lr=0.1) for m in (net, twin)]
    for _ in range(5):
        x = kiln.randn(3, 4)
        results = []
        for model, call, optimizer in zip((net, twin), (fast, twin), optimizers, strict=True):
            optimizer.zero_grad()
            out = call(x)
            out.square().sum().backward()
            optimizer.step()
            results.append((out, model[0].weight))
        for a, b in zip(*results, strict=True):
            kiln.testing.assert_close(a, b)
    assert fast.counts()["replayed"] >= 3, fast.explain()
    for (name, a), b in zip(net.state_dict().items(), twin.state_dict().values(), strict=True):
        kiln.testing.assert_close(a, b, msg=name)
