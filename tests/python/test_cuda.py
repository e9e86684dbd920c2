"""kiln.cuda: device "cuda" from Python, on the driver that tests play (tests/gpu_host/fake)."""

import os
import pathlib
import subprocess
import sys

import kiln

FAKE = pathlib.Path(kiln.__file__).parents[2] / "tests" / "fake_cuda"


def run(program, settings="", **more):
    """What a program prints in a process with that driver."""
    assert (FAKE / "libcuda.so.1").exists(), "script/python builds it"
    environment = {
        **os.environ,
        "KILN_FAKE_CUDA": settings,
        "LD_LIBRARY_PATH": f"{FAKE}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "KILN_GPU_HOST_KERNELS": str(FAKE / "kernels"),
        "KILN_KERNEL_CACHE": "",
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_devices_properties_and_memory():
    out = run(
        """
import kiln
assert kiln.cuda.is_available() and kiln.cuda.device_count() == 2 and kiln.cuda.absence() == ""
assert kiln.cuda.get_device_name(1) == "Fake GPU 1"
assert kiln.cuda.get_device_capability() == (7, 5)  # the played GPU has no matrix units
assert kiln.cuda.get_device_properties("cuda:1").total_memory == 256 << 20
x = kiln.arange(6.0).reshape(2, 3).cuda()
assert x.is_cuda and x.device == kiln.device("cuda") and kiln.ones(1).cuda(1).device.index == 1
assert (x @ x.t()).sum().item() == 83.0
assert kiln.cuda.memory_allocated() > 0 and kiln.cuda.memory_allocated(1) == 0
with kiln.cuda.device(1):
    assert kiln.cuda.current_device() == 1 and kiln.cuda.memory_allocated() == 0
assert kiln.cuda.current_device() == 0
kiln.cuda.empty_cache()
kiln.cuda.synchronize()
kiln.cuda.set_per_process_memory_fraction(0.25)
for call in (
    lambda: kiln.zeros(2**25, device="cuda"), lambda: kiln.cuda.set_device(2),
    lambda: kiln.ones(2, device="cuda:2"), lambda: kiln.cuda.memory_stats("cpu"),
    lambda: kiln.ones(2).cuda("cpu"), lambda: x + kiln.ones(3), lambda: kiln.cuda.CUDAGraph(),
):
    try:
        call()
        raise SystemExit("no error")
    except (kiln.errors.DeviceError, ValueError) as error:
        print(error)
""",
        "devices=2,memory=256",
    )
    lines = out.splitlines()
    assert "cuda: out of memory on Fake GPU 0" in lines[0]
    assert "expected 0 to 1" in lines[1] and "expected 0 to 1" in lines[2]
    assert "another kind of device" in lines[3] and "another kind of device" in lines[4]
    assert "different devices" in lines[5] or "device" in lines[5]


def test_autocast_and_grad_scaler():
    run(
        """
import warnings
import kiln
warnings.simplefilter("error")
x = kiln.ones(2, 2, device="cuda")
assert kiln.get_autocast_dtype("cuda") is kiln.float16 and not kiln.is_autocast_enabled()
with kiln.autocast("cuda"):
    assert (x @ x).dtype is kiln.float16 and kiln.is_autocast_enabled("cuda")
with kiln.autocast("cuda", dtype=kiln.bfloat16):
    assert (x @ x).dtype is kiln.bfloat16 and kiln.get_autocast_dtype("cuda") is kiln.bfloat16
    with kiln.autocast("cuda", enabled=False):
        assert (x @ x).dtype is kiln.float32
assert not kiln.is_autocast_enabled("cuda") and (x @ x).dtype is kiln.float32
scaler = kiln.GradScaler("cuda", init_scale=4.0)
assert scaler.is_enabled() and scaler.scale(x.sum()).item() == 16.0
""",
        "devices=1",
    )


def test_gradients_and_a_step_as_on_the_cpu():
    run(
        """
import kiln
def losses(device):
    kiln.manual_seed(3)
    layer = kiln.nn.Linear(5, 2)
    x = kiln.randn(7, 5)
    layer.to(device)
    x = x.to(device, non_blocking=True)
    optimizer = kiln.optim.AdamW(layer.parameters(), lr=0.1)
    out = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = layer(x).tanh().square().mean()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out
for a, b in zip(losses("cpu"), losses("cuda")):
    assert abs(a - b) < 1e-5, (a, b)
"""
    )


def test_events_and_streams():
    run(
        """
import kiln
start, end = (kiln.cuda.Event(enable_timing=True) for _ in range(2))
assert start.query()
start.record()
x = kiln.ones(1000, device="cuda")
for _ in range(5):
    x = x * 1.5
end.record()
assert not end.query()  # nothing has waited yet
end.synchronize()
assert start.query() and end.query() and start.elapsed_time(end) >= 0
stream = kiln.cuda.current_stream()
with kiln.cuda.stream(stream):
    y = x + 1
event = stream.record_event()
stream.wait_event(event)
stream.synchronize()
assert event.query() and stream == kiln.cuda.default_stream("cuda:0")
for wrong in (lambda: start.elapsed_time(kiln.cuda.Event()), lambda: kiln.cuda.Event().elapsed_time(end)):
    try:
        wrong()
        raise SystemExit("no error")
    except ValueError:
        pass
"""
    )


def test_memory_that_other_libraries_can_use():
    run(
        """
import ctypes
import kiln
x = kiln.arange(12.0, device="cuda").reshape(3, 4).t()[1:]
assert x.__dlpack_device__() == (2, 0) and kiln.ones(1).__dlpack_device__() == (1, 0)
face = x.__cuda_array_interface__
assert face["shape"] == (3, 3) and face["strides"] == (4, 16) and face["typestr"] == "<f4"
# The tests' driver has its blocks in host memory.
first = ctypes.cast(face["data"][0], ctypes.POINTER(ctypes.c_float))
assert [first[i] for i in (0, 1, 4)] == [1.0, 2.0, 5.0]
assert not hasattr(kiln.ones(1), "__cuda_array_interface__")
capsule = x.__dlpack__(stream=2, max_version=(1, 0))
assert "dltensor_versioned" in repr(capsule)
class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("id", ctypes.c_int32)]
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
old = x.__dlpack__()
shown = Tensor.from_address(get(old, b"dltensor"))
assert (shown.type, shown.id) == (2, 0) and shown.data == face["data"][0]
before = kiln.cuda.memory_allocated()
del x
assert kiln.cuda.memory_allocated() == before  # the capsules hold it
del capsule, old, shown
assert kiln.cuda.memory_allocated() < before
try:
    kiln.ones(2, device="cuda").__dlpack__(dl_device=(1, 0))
    raise SystemExit("no error")
except BufferError:
    pass
"""
    )


def test_without_a_device_the_error_says_what_is_missing():
    out = run(
        """
import kiln
assert not kiln.cuda.is_available() and kiln.cuda.device_count() == 0
assert kiln.cuda.memory_allocated() == 0
for call in (lambda: kiln.ones(1).cuda(), lambda: kiln.cuda.Stream(), kiln.cuda.current_device):
    try:
        call()
        raise SystemExit("no error")
    except kiln.errors.DeviceError as error:
        print(error)
""",
        "version=11040",
    )
    assert all("for CUDA 11.4; expected 12.0 or newer" in line for line in out.splitlines())


def test_pinned_memory_is_that_of_the_gpu():
    run(
        """
import kiln
values = kiln.arange(8.0)
x = values.pin_memory()
assert x.is_pinned() and x.is_pinned("cuda") and not values.is_pinned()
assert kiln.ones(3, pin_memory=True).is_pinned() and x.new_zeros(2, pin_memory=True).is_pinned()
made = kiln.empty_strided((2, 3), (1, 2), pin_memory=True)
assert made.is_pinned() and made.stride() == (1, 2)
leaf = kiln.rand(2, pin_memory=True, requires_grad=True)
assert leaf.is_pinned() and leaf.is_leaf and leaf.requires_grad
packed = kiln.nn.utils.rnn.pack_sequence([kiln.ones(3, 2), kiln.ones(1, 2)]).pin_memory()
assert packed.is_pinned()
done = kiln.cuda.Event()
y = x.cuda(non_blocking=True)
done.record()
assert not done.query()
z = (y + 1).to("cpu", non_blocking=True)
kiln.cuda.synchronize()
assert done.query() and z.tolist() == (values + 1).tolist()
loader = kiln.utils.data.DataLoader(kiln.utils.data.TensorDataset(values), batch_size=4, pin_memory=True)
assert [batch.is_pinned() for (batch,) in loader] == [True, True]
stats = kiln.cuda.host_memory_stats()
assert stats["bytes_in_use"] > 0 and stats["allocations"] >= 9
try:
    kiln.ones(2, device="cuda", pin_memory=True)
    raise SystemExit("no error")
except kiln.errors.DeviceError:
    pass
"""
    )
