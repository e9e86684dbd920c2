"""When a compiled call may replay what was captured, and when it must capture anew."""

import enum
import gc
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
