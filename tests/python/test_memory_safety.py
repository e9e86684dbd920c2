"""Memory that is lent to others, exchanged while it is read, freed late or not at all."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import kiln
from kiln import nn


def run(script, **environment):
    """A script in a process of its own: what it finds may end it."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )


# ---- Views of other libraries hold the memory, not the tensor


def half(x):
    m = nn.Module()
    m.w = nn.Parameter(x.data)
    m.requires_grad_(False)
    return m.w, m.half


def data(x):
    def assign():
        x.data = kiln.ones(3)

    return x, assign


def shared(x):
    return x, x.share_memory_


@pytest.mark.parametrize("change", [half, data, shared])
@pytest.mark.parametrize("size", [5, 400, 4_000_000])
@pytest.mark.parametrize("view", ["numpy", "asarray", "dlpack", "torch"])
def test_views_outlive_what_the_tensor_becomes(change, size, view):
    if view == "torch":
        torch = pytest.importorskip("torch")
    x, exchange = change(kiln.zeros(size))
    lend = {
        "numpy": lambda: x.numpy(),
        "asarray": lambda: np.asarray(x),
        "dlpack": lambda: np.from_dlpack(x),
        "torch": lambda: torch.from_dlpack(x).numpy(),
    }[view]
    lent = lend()
    capsule = x.__dlpack__()
    exchange()
    del x, exchange
    kiln.empty_cache()
    others = [kiln.full((size,), 7.0) for _ in range(4)]  # would lie where the memory was
    assert not lent.any()
    lent[:] = 3
    assert all(bool((y == 7).all()) for y in others)
    kept = kiln.from_dlpack(capsule)
    assert kept.shape == (size,) and float(kept[0]) == 3


def test_a_lent_gradient_outlives_zero_grad():
    x = kiln.zeros(100_000, requires_grad=True)
    x.sum().backward()
    lent = x.grad.numpy()
    x.grad = None
    kiln.empty_cache()
    assert (lent == 1).all()


def test_array_protocol_honours_copy():
    x = kiln.arange(4.0)
    shared_array = np.asarray(x)
    shared_array[0] = 9
    assert x[0] == 9
    copied = np.array(x, copy=True)
    copied[0] = 1
    assert x[0] == 9
    with pytest.raises(TypeError, match="copy"):
        x.__array__(copy=5)
    assert np.asarray(x, dtype=np.int32).dtype == np.int32
    with pytest.raises(ValueError, match="new memory"):
        x.__array__(dtype=np.int32, copy=False)


def test_dlpack_honours_its_arguments():
    x = kiln.arange(4.0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" not in repr(x.__dlpack__())
    assert "dltensor_versioned" not in repr(x.__dlpack__(max_version=(0, 8)))
    with pytest.raises(BufferError, match="dl_device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(TypeError):
        x.__dlpack__(max_version=3)
    with pytest.raises(TypeError):
        x.__dlpack__(other=1)
    x.__dlpack__(dl_device=(1, 0), copy=None, stream=None)
    for version in [None, (1, 0)]:
        y = kiln.from_dlpack(x.__dlpack__(copy=True, max_version=version))
        z = kiln.from_dlpack(x.__dlpack__(copy=False, max_version=version))
        x += 1
        assert y.tolist() == [v - 1 for v in x.tolist()] and z.tolist() == x.tolist()


def test_from_dlpack_copies_what_is_read_only():
    a = np.arange(4.0)
    a.flags.writeable = False
    x = kiln.from_dlpack(a)
    x += 1
    assert a.tolist() == [0, 1, 2, 3] and x.tolist() == [1, 2, 3, 4]
    with pytest.raises(BufferError, match="read-only"):
        kiln.from_dlpack(a, copy=False)
    b = np.arange(4.0)
    y = kiln.from_dlpack(b, copy=True)
    y += 1
    assert b[0] == 0
    kiln.from_dlpack(b, copy=False).add_(1)
    assert b[0] == 1


def test_from_dlpack_of_producers_without_the_new_arguments():
    class Old:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, stream=None):
            return self.x.__dlpack__()

    x = kiln.arange(3.0)
    y = kiln.from_dlpack(Old(x))
    y += 1
    assert x.tolist() == [1, 2, 3]


# ---- Parameters exchanged while other threads compute


def serve(change, check, seconds=1.5):
    """Two threads call check() over and over while a third one calls change(i)."""
    stop, wrong, count = [False], [], [0, 0]

    def reader():
        while not stop[0]:
            try:
                if not check():
                    wrong.append("value")
            except Exception as e:  # noqa: BLE001
                wrong.append(repr(e))
            count[0] += 1

    def writer():
        while not stop[0]:
            change(count[1])
            kiln.empty_cache()
            count[1] += 1

    threads = [threading.Thread(target=reader) for _ in range(2)]
    threads.append(threading.Thread(target=writer))
    for t in threads:
        t.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end or min(count) < 3:
        time.sleep(0.05)
    stop[0] = True
    for t in threads:
        t.join()
    return wrong


def test_weights_are_refreshed_while_threads_infer():
    m = nn.Linear(1500, 1500)
    m.requires_grad_(False)
    for p in m.parameters():
        p.data = kiln.zeros_like(p)
    x = kiln.ones(64, 1500)

    def change(i):
        m.weight.data = kiln.ones(1500, 1500) if i % 2 else kiln.zeros(1500, 1500)

    assert serve(change, lambda: m(x)[0, 0].item() in (0.0, 1500.0)) == []


def test_dtype_and_shape_change_while_threads_compute():
    w = kiln.ones(300, 300)

    def change(i):
        n = (300, 500, 40)[i % 3]
        w.data = kiln.ones(n, n, dtype=kiln.float64 if i % 2 else kiln.float32)

    def check():
        y = w @ w
        return y[0, 0].item() == y.shape[0]

    assert serve(change, check) == []


def test_a_module_is_cast_while_threads_infer():
    m = nn.Linear(600, 600, bias=False)
    m.weight.data = kiln.ones(600, 600)
    x = kiln.ones(8, 600)

    def change(i):
        m.double() if i % 2 else m.float()

    def check():
        try:
            return m(x)[0, 0].item() == 600
        except (kiln.errors.DTypeError, TypeError):
            return True  # x is float32

    assert serve(change, check) == []


def test_backward_goes_on_while_a_parameter_is_exchanged():
    w = kiln.ones(400, 400, requires_grad=True)
    x = kiln.ones(8, 400)

    def change(i):
        w.data = kiln.ones(400, 400)

    def check():
        (g,) = kiln.autograd.grad((x @ w).sum(), [w])
        return float(g[0, 0]) == 8

    assert serve(change, check) == []


def test_a_hook_may_exchange_what_the_pass_works_on():
    w = kiln.ones(300, 300, requires_grad=True)
    y = w @ w

    def hook(grad):
        w.data = kiln.zeros(5000)
        kiln.empty_cache()

    y.register_hook(hook)
    kiln.autograd.grad(y.sum(), [w])
    assert w.shape == (5000,)


# ---- Cycles through C++


def freed(make):
    """Whether what make() builds and forgets is gone after a collection."""
    gc.collect()
    objects = [weakref.ref(o) for o in make()]
    gc.collect()
    return all(r() is None for r in objects)


class Scaled(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.w = nn.Parameter(kiln.ones(1000))
        self.scale = 2.0
        getattr(self.w, how)(self.hook)

    def hook(self, grad):
        return grad * self.scale if self.scale != 2.0 else None


@pytest.mark.parametrize("how", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_module_whose_parameter_has_a_hook_on_it_is_collected(how):
    def make():
        m = Scaled(how)
        m.w.sum().backward()
        return m, m.w

    assert freed(make)


def test_a_hook_on_a_result_is_collected():
    def make():
        m = nn.Module()
        m.w = nn.Parameter(kiln.ones(3))
        m.y = m.w * 2
        m.y.register_hook(lambda g: m and None)
        return m, m.y

    assert freed(make)


def test_a_function_context_that_keeps_its_output_is_collected():
    class Keeper:
        pass

    class Double(kiln.autograd.Function):
        @staticmethod
        def forward(ctx, x, keeper):
            ctx.keeper = keeper
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    def make():
        keeper = Keeper()
        keeper.y = Double.apply(kiln.ones(3, requires_grad=True), keeper)
        return keeper, keeper.y

    assert freed(make)


def test_what_others_hold_is_not_collected():
    calls = []
    w = nn.Parameter(kiln.ones(3))
    w.register_hook(lambda g: calls.append(float(g.sum())))
    optimizer = kiln.optim.SGD([w], lr=0.1)
    y = (w * w).sum()
    del w
    gc.collect()
    y.backward()
    assert calls == [6.0]
    optimizer.step()

    class Square(kiln.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    x = kiln.full((2,), 3.0, requires_grad=True)
    z = Square.apply(x).sum()
    gc.collect()
    z.backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_hooked_modules_do_not_pile_up():
    done = run(
        """
import gc, kiln
from kiln import nn
def used(): return kiln.memory_stats()['bytes_in_use'] >> 20
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(kiln.ones(1_000_000))
        self.scale = 2.0
        self.w.register_hook(lambda g: g * self.scale)
for i in range(40):
    m = M(); m.w.sum().backward(); del m
    if i % 10 == 9: gc.collect()
gc.collect()
print(used())
"""
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 8


# ---- Limits and guards


def test_an_allocation_beyond_the_limit_is_an_error():
    before = kiln.memory_limit()
    kiln.empty_cache()
    try:
        kiln.set_memory_limit(kiln.memory_stats()["bytes_in_use"] + (64 << 20))
        kiln.ones(4 << 20)
        with pytest.raises(kiln.OutOfMemoryError, match="out of memory; cannot allocate 800000000"):
            kiln.ones(200_000_000)
        kiln.ones(4 << 20)
    finally:
        kiln.set_memory_limit(before)


GUARDED = {
    "read past the end": (
        "import ctypes, kiln; x = kiln.zeros(400); "
        "ctypes.string_at(x.data_ptr() + 1600, 1)",
        -11,
        "",
    ),
    "read after the end of life": (
        "import ctypes, kiln; x = kiln.zeros(5000); p = x.data_ptr(); del x; "
        "ctypes.string_at(p, 1)",
        -11,
        "",
    ),
    "write past the end, in the slack": (
        "import ctypes, kiln; x = kiln.zeros(3); ctypes.memset(x.data_ptr() + 12, 1, 1); del x",
        -6,
        "past the end of a block",
    ),
    "write in front": (
        "import ctypes, kiln; x = kiln.zeros(5000); ctypes.memset(x.data_ptr() - 1, 1, 1); del x",
        -6,
        "in front of a block",
    ),
    "nothing wrong": (
        "import kiln; x = kiln.randn(300, 300, requires_grad=True); "
        "(x @ x).sum().backward(); print(x.grad.sum().item() == x.grad.sum().item())",
        0,
        "",
    ),
}


@pytest.mark.parametrize("what", GUARDED)
def test_the_guard_finds(what):
    script, status, message = GUARDED[what]
    done = run(script, KILN_GUARD="1")
    assert done.returncode == status, done.stderr
    assert message in done.stderr


def test_uninitialized_memory_is_not_a_number_under_the_guard():
    done = run("import kiln; print(kiln.empty(1000).isnan().all().item())", KILN_GUARD="1")
    assert done.stdout.strip() == "True", done.stderr


def test_the_guard_gives_way_when_the_system_has_no_more_mappings():
    done = run(
        "import kiln; x = [kiln.zeros(4) for _ in range(40_000)]; "
        "print(sum(y[0].item() for y in x)); del x; print(kiln.ones(3).sum().item())",
        KILN_GUARD="1",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0.0", "3.0"]
    assert done.stderr.count("no more mappings") == 1
