"""to() and the other casts and moves."""

import os

import pytest

import kiln


def make(lib):
    net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm2d(2))
    net[0](lib.ones(1, 2)).sum().backward()
    return net


def test_casts_keep_the_parameter_objects(lib):
    net = make(lib)
    weight = net[0].weight
    for method, dtype in (
        ("double", lib.float64), ("half", lib.float16), ("bfloat16", lib.bfloat16),
        ("float", lib.float32),
    ):  # fmt: skip
        assert getattr(net, method)() is net
        assert net[0].weight is weight and weight.dtype is dtype and weight.requires_grad
        assert weight.grad.dtype is dtype and net[1].running_mean.dtype is dtype
        assert net[1].num_batches_tracked.dtype is lib.int64


def test_type_casts_everything(lib):
    net = lib.nn.BatchNorm2d(2)
    assert net.type(lib.float64) is net and net.num_batches_tracked.dtype is lib.float64
    if lib is kiln:
        net.type("kiln.float32")
        assert net.running_mean.dtype is kiln.float32
        net.type("float16")
        assert net.running_mean.dtype is kiln.float16


def test_to_in_its_forms(lib):
    net = make(lib)
    assert net.to(lib.float64) is net and net[0].weight.dtype is lib.float64
    net.to("cpu", lib.float32)
    assert net[0].weight.dtype is lib.float32
    net.to("cpu", dtype=lib.float64, non_blocking=True)
    net.to(device="cpu", dtype=lib.float32)
    net.to(lib.ones(1, dtype=lib.float64))
    assert net[0].weight.dtype is lib.float64 and net[1].num_batches_tracked.dtype is lib.int64
    net.to(lib.device("cpu"))
    conv = lib.nn.Conv2d(2, 3, 3)
    conv.to(memory_format=lib.channels_last)
    assert conv.weight.stride() == (18, 1, 6, 2) and conv.bias.stride() == (1,)
    with pytest.raises(TypeError, match="only accepts floating point or complex"):
        net.to(lib.int64)
    with pytest.raises(TypeError):
        net.to(lib.float32, lib.float64, lib.float32)


def test_optimizer_still_fits_after_to(lib):
    net = lib.nn.Linear(1, 1)
    optimizer = lib.optim.SGD(net.parameters(), lr=1.0)
    net.double()
    net(lib.ones(1, 1, dtype=lib.float64)).sum().backward()
    before = net.bias.item()
    optimizer.step()
    assert net.bias.item() == pytest.approx(before - 1)


def test_to_empty(lib):
    net = lib.nn.Sequential(lib.nn.Linear(2, 2))
    weight, pointer = net[0].weight, net[0].weight.data_ptr()
    old = net[0].weight.detach()
    assert net.to_empty(device="cpu", recurse=False) is net and weight.data_ptr() == pointer
    net.to_empty(device="cpu")
    assert net[0].weight.shape == (2, 2) and net[0].weight.data_ptr() != old.data_ptr()
    with pytest.raises(TypeError):
        net.to_empty("cpu")


def test_cpu_and_cuda():
    net = make(kiln)
    assert net.cpu() is net
    for call in (net.cuda, lambda: net.cuda(0), lambda: net.to("cuda")):
        with pytest.raises(RuntimeError, match="cuda"):
            call()


def test_share_memory():
    net = kiln.nn.Linear(2, 2)
    assert net.share_memory() is net and net.weight.is_shared() and net.bias.is_shared()
    child = os.fork()
    if child == 0:
        with kiln.no_grad():
            net.weight.fill_(7.0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert net.weight.tolist() == [[7, 7], [7, 7]]


def test_overridden_apply_is_called(lib):
    class Mine(lib.nn.Linear):
        calls = 0

        def _apply(self, fn, recurse=True):
            Mine.calls += 1
            return super()._apply(fn, recurse)

    lib.nn.Sequential(Mine(1, 1)).double()
    assert Mine.calls == 1


@pytest.mark.parametrize(
    "name, dtype", [("HalfTensor", "float16"), ("DoubleTensor", "float64"), ("LongTensor", "int64")]
)
def test_type_by_the_names_of_tensors(name, dtype):
    for given in (f"torch.{name}", f"kiln.{name}", getattr(kiln, name), f"torch.{dtype}", dtype):
        layer = kiln.nn.Linear(2, 2)
        weight = layer.weight
        assert layer.type(given) is layer
        assert layer.weight is weight and weight.dtype == getattr(kiln, dtype)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        kiln.nn.Linear(2, 2).type("torch.cuda.FloatTensor")
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        kiln.nn.Linear(2, 2).type("torch.FlotTensor")
