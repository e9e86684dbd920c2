"""kiln.opencl: device "opencl" from Python."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import kiln

HERE = kiln.opencl.is_available()
needs_device = pytest.mark.skipif(
    not HERE and not os.environ.get("KILN_CI"), reason=f"no OpenCL device: {kiln.opencl.absence()}"
)


def test_without_a_driver_the_error_says_what_is_missing(tmp_path):
    # In a process of its own, whose loader finds no driver.
    program = """
import kiln
assert not kiln.opencl.is_available() and kiln.opencl.device_count() == 0
print(kiln.opencl.absence())
try:
    kiln.ones(1, device=kiln.device("opencl"))
except kiln.errors.DeviceError as error:
    print(error)
"""
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    absence, error = done.stdout.splitlines()[:2]
    assert absence and absence in done.stdout.split(absence, 1)[1], done.stdout  # the error says it too
    assert "opencl" in error


@needs_device
def test_the_device_and_its_properties():
    assert kiln.opencl.is_available() and kiln.opencl.absence() == ""
    assert kiln.opencl.device_count() >= 1
    assert kiln.device("opencl").type == "opencl" and kiln.device("opencl") == kiln.device("opencl:0")
    properties = kiln.opencl.get_device_properties()
    assert properties["name"] == kiln.opencl.get_device_name("opencl")
    assert properties["total_memory"] > 0
    with pytest.raises(kiln.errors.DeviceError, match="expected 0 to"):
        kiln.opencl.get_device_properties("opencl:99")
    with pytest.raises(kiln.errors.DeviceError, match="expected 0 to"):
        kiln.ones(2, device="opencl:99")
    with pytest.raises(kiln.errors.DeviceError, match="another kind of device"):
        kiln.opencl.memory_stats("cpu")


@needs_device
def test_tensors_and_gradients():
    values = np.arange(6, dtype=np.float32).reshape(2, 3) / 10
    x = kiln.tensor(values).to("opencl").requires_grad_()
    assert x.device == kiln.device("opencl")
    y = (x @ x.t()).tanh().sum()
    y.backward()
    on_cpu = kiln.tensor(values).requires_grad_()
    (on_cpu @ on_cpu.t()).tanh().sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), on_cpu.grad.numpy(), rtol=1e-5, atol=1e-6)
    with kiln.device("opencl"):
        assert kiln.zeros(3).device.type == "opencl"
    with pytest.raises(kiln.errors.DeviceError):
        x + kiln.ones(2, 3)


@needs_device
def test_a_module_trains_and_its_state_goes_through_files(tmp_path):
    kiln.manual_seed(0)
    model = kiln.nn.Linear(4, 2).to("opencl")
    optimizer = kiln.optim.SGD(model.parameters(), lr=0.1)
    x = kiln.randn(8, 4, device="opencl")
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (model(x) - 1.0).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]
    kiln.save(model.state_dict(), tmp_path / "model.pt")
    again = kiln.nn.Linear(4, 2)
    again.load_state_dict(kiln.load(tmp_path / "model.pt", map_location="cpu"))
    np.testing.assert_array_equal(again.weight.detach().numpy(), model.weight.detach().cpu().numpy())


@needs_device
def test_errors_of_kernels_and_memory():
    x = kiln.arange(3.0, device="opencl")
    with pytest.raises(IndexError, match="gather: index out of range"):
        x.gather(0, kiln.tensor([5], device="opencl"))
        kiln.opencl.synchronize()
    kiln.opencl.synchronize()
    before = kiln.opencl.memory_allocated()
    y = kiln.zeros(1 << 18, device="opencl")
    assert kiln.opencl.memory_allocated() >= before + (1 << 20)
    del y
    assert kiln.opencl.memory_allocated() == before
    kiln.opencl.empty_cache()
    assert kiln.opencl.memory_stats("opencl")["bytes_cached"] == 0


@needs_device
def test_the_keywords_and_protocols_of_memory(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = kiln.tensor(values).pin_memory().to("opencl", non_blocking=True)
    assert x.device == kiln.device("opencl") and not x.is_pinned()
    back = kiln.empty(2, 3)
    back.copy_(x, non_blocking=True)
    np.testing.assert_array_equal(back.numpy(), values)
    loader = kiln.utils.data.DataLoader(
        kiln.utils.data.TensorDataset(kiln.tensor(values)), batch_size=2, pin_memory=True
    )
    (batch,) = next(iter(loader))
    np.testing.assert_array_equal(batch.to("opencl", non_blocking=True).cpu().numpy(), values)
    # Where a file's tensors go.
    kiln.save({"x": x, "y": kiln.ones(2)}, tmp_path / "both.pt")
    for location in ("opencl", kiln.device("opencl"), {"cpu": "opencl", "opencl": "opencl"}):
        found = kiln.load(tmp_path / "both.pt", map_location=location)
        assert {t.device.type for t in found.values()} == {"opencl"}
        np.testing.assert_array_equal(found["x"].cpu().numpy(), values)
    found = kiln.load(tmp_path / "both.pt", map_location=lambda tensor, location: tensor.to("opencl"))
    assert found["y"].device.type == "opencl"
    # What only host memory has.
    for export in (lambda: x.__dlpack__(), lambda: kiln.to_dlpack(x), lambda: x.numpy()):
        with pytest.raises(kiln.errors.Error, match="cpu"):
            export()


@needs_device
def test_pinned_memory_and_copies_that_do_not_wait():
    values = kiln.arange(12.0).reshape(3, 4)
    pinned = values.pin_memory("opencl")
    assert pinned.is_pinned() and pinned.is_pinned("opencl") and not values.is_pinned()
    assert pinned.pin_memory("opencl") is pinned and pinned.equal(values)
    there = pinned.to("opencl", non_blocking=True)
    back = (there * 2).to("cpu", non_blocking=True)
    target = kiln.zeros(3, 4).pin_memory("opencl")
    target.copy_(there, non_blocking=True)
    kiln.opencl.synchronize()
    assert back.is_pinned() and back.equal(values * 2) and target.equal(values)
    assert pinned.to("opencl", kiln.float16, non_blocking=True).cpu().tolist() == values.tolist()
    assert kiln.opencl.pinned_memory_stats()["bytes_in_use"] >= 3 * 48
    # What it is a view of, and what is made in it.
    assert pinned[1:].is_pinned() and pinned.t().is_pinned()
    x = values.requires_grad_()
    (x.pin_memory("opencl").to("opencl", non_blocking=True) ** 2).sum().backward()
    assert x.grad.equal(2 * values.detach())
    layer = kiln.nn.Linear(4, 2)
    before = layer.weight.detach().clone()
    layer.to("opencl", non_blocking=True)
    assert layer.weight.detach().cpu().equal(before)
    for wrong in ("cpu", "meta"):
        with pytest.raises(kiln.errors.DeviceError):
            values.detach().pin_memory(wrong)
    with pytest.raises(kiln.errors.DeviceError):
        there.pin_memory("opencl")
    del pinned, back, target, layer
    kiln.opencl.synchronize()
    kiln.opencl.empty_cache()
    assert kiln.opencl.pinned_memory_stats()["bytes_cached"] == 0


class Pair:
    def __init__(self, x):
        self.x, self.pins = x, 0

    def pin_memory(self):
        self.pins += 1
        return self


@needs_device
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_pinned(workers):
    class Rows(kiln.utils.data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return {"x": kiln.full((2,), float(i)), "pair": (i, "name"), "list": [kiln.tensor(i)]}

    loader = kiln.utils.data.DataLoader(
        Rows(), batch_size=3, num_workers=workers, pin_memory=True, pin_memory_device="opencl"
    )
    seen = []
    for batch in loader:
        assert batch["x"].is_pinned() and batch["pair"][0].is_pinned()
        assert batch["list"][0].is_pinned() and list(batch["pair"][1]) == ["name"] * 3
        seen += batch["x"].to("opencl", non_blocking=True)[:, 0].cpu().tolist()
    assert seen == [0, 1, 2, 3, 4, 5]
    objects = kiln.utils.data.DataLoader(
        [1, 2], batch_size=2, pin_memory=True, pin_memory_device="opencl", collate_fn=Pair
    )
    assert [pair.pins for pair in objects] == [1]


@needs_device
def test_profiles_have_the_times_of_the_device(tmp_path):
    x = kiln.rand(200, 200, device="opencl")
    (x @ x).sum().item()
    with kiln.profiler.profile() as p:
        for _ in range(3):
            y = x @ x
    rows = {row["op"]: row for row in p.rows()}
    assert rows["float_matmul"]["count"] == 3 and rows["float_matmul"]["device_seconds"] > 0
    assert "device ms" in p.table()
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (line,) = [
        e["tid"] for e in events if e["name"] == "thread_name" and e["args"]["name"] == "opencl:0"
    ]
    there = [e for e in events if e["ph"] == "X" and e["tid"] == line]
    assert [e["name"] for e in there] == ["float_matmul"] * 3
    total = sum(e["dur"] for e in there) * 1e-6
    assert abs(total - rows["float_matmul"]["device_seconds"]) < 1e-5
    with kiln.profiler.profile() as p:
        kiln.ones(3).sum()
    assert "device ms" not in p.table() and y.shape == (200, 200)


@needs_device
def test_a_process_may_end_while_the_device_computes(tmp_path):
    """A driver that compiles its kernels anew, in threads of its own, is waited for."""
    program = "import kiln; x = kiln.rand(64, 64, device='opencl'); y = (x @ x).softmax(1).sum(0)"
    for i in range(3):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "POCL_CACHE_DIR": str(tmp_path / str(i))},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
