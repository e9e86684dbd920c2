"""kiln.cuda, kiln.backends, kiln.amp, default devices and the names of tensors' types."""

import threading
import warnings

import pytest

import kiln
from conftest import HAS_TORCH


def test_there_is_no_cuda_device(lib):
    assert lib.cuda.is_available() is False and lib.cuda.device_count() == 0
    device = lib.device("cuda" if lib.cuda.is_available() else "cpu")
    assert lib.zeros(2, device=device).to(device).device == device
    lib.cuda.manual_seed(3)
    lib.cuda.manual_seed_all(3)
    lib.cuda.empty_cache()
    assert lib.cuda.memory_allocated() == lib.cuda.max_memory_allocated() == 0
    assert not lib.cuda.is_initialized() and not lib.cuda.is_bf16_supported()
    assert lib.cuda.get_rng_state_all() == []
    assert not isinstance(lib.ones(2), lib.cuda.FloatTensor)
    for name in ("current_device", "get_device_name", "current_stream", "mem_get_info", "Event"):
        with pytest.raises((RuntimeError, AssertionError)):
            getattr(lib.cuda, name)()


def test_what_needs_a_cuda_device_is_a_device_error():
    kiln.cuda.synchronize()
    for call in (
        kiln.cuda.current_device,
        lambda: kiln.cuda.set_device(0),
        lambda: kiln.cuda.get_device_properties(0),
        lambda: kiln.cuda.device(0),
        lambda: kiln.cuda.Stream(),
        lambda: kiln.cuda.FloatTensor(2),
        lambda: kiln.cuda.synchronize(0),
        lambda: kiln.cuda.get_rng_state(),
        lambda: kiln.cuda.initial_seed(),
        lambda: kiln.cuda.ipc_collect(),
        lambda: kiln.ones(1).to(kiln.device("cuda")),
        lambda: kiln.ones(1, device=kiln.device("cuda", 1)),
        lambda: kiln.set_default_device(kiln.device("cuda")),
    ):
        with pytest.raises(kiln.errors.DeviceError, match="cuda"):
            call()


def test_random_states_without_a_cuda_device(lib):
    state = lib.get_rng_state()
    lib.cuda.set_rng_state(state)
    lib.cuda.set_rng_state_all([state, state])
    lib.cuda.set_rng_state_all([])
    lib.cuda.manual_seed_all(7)
    lib.cuda.seed_all()
    assert lib.equal(lib.get_rng_state(), state) and len(lib.cuda.default_generators) == 0
    with lib.random.fork_rng(devices=range(lib.cuda.device_count()), device_type="cuda"):
        lib.manual_seed(1)
    assert lib.equal(lib.get_rng_state(), state)
    with lib.random.fork_rng(enabled=False, _caller="mine", _devices_kw="devices"):
        lib.manual_seed(1)
    assert not lib.equal(lib.get_rng_state(), state)
    with pytest.raises(RuntimeError):
        lib.random.fork_rng(device_type="gpu").__enter__()
    assert lib.cuda.max_memory_cached() == lib.cuda.memory_cached() == 0


def test_a_device_that_is_not_there_can_be_named(lib):
    a, b = lib.device("mps"), lib.device("xpu", 1)
    assert (a.type, a.index, b.type, b.index) == ("mps", None, "xpu", 1)
    assert a == lib.device("mps") != b and len({a, b, lib.device("mps")}) == 2
    assert str(b) == "xpu:1" and a != lib.device("cpu")
    assert repr(b).endswith("device(type='xpu', index=1)")
    with pytest.raises(RuntimeError):
        lib.ones(1).to(a).item()
    for wrong in ("none", "mps:", "mps:x", "cpu:cpu", "cuda:-1"):
        with pytest.raises(RuntimeError):
            lib.device(wrong)


def test_backends(lib):
    backends = lib.backends
    assert backends.mps.is_available() is False and backends.mps.is_built() is False
    assert backends.cudnn.is_available() is False and backends.cudnn.version() is None
    assert backends.cuda.is_built() is False
    before = backends.cudnn.benchmark
    backends.cudnn.benchmark = True
    backends.cudnn.deterministic = True
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cudnn.benchmark is True and backends.cuda.matmul.allow_tf32 is True
    with backends.cudnn.flags(enabled=False, benchmark=False):
        assert not backends.cudnn.enabled and not backends.cudnn.benchmark
    assert backends.cudnn.enabled and backends.cudnn.benchmark is True
    backends.cudnn.benchmark = before
    backends.cudnn.deterministic = False
    backends.cuda.matmul.allow_tf32 = False
    with backends.mkldnn.flags(enabled=False):
        assert not backends.mkldnn.enabled
    backends.cuda.enable_flash_sdp(False)
    assert not backends.cuda.flash_sdp_enabled()
    backends.cuda.enable_flash_sdp(True)


def test_backends_that_are_not_there():
    for name in ("mkldnn", "mkl", "openmp", "opt_einsum"):
        assert getattr(kiln.backends, name).is_available() is False
    import kiln.backends.cudnn as cudnn

    assert cudnn is kiln.backends.cudnn


# ---- Mixed precision


def test_amp_turns_itself_off(lib):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaler = lib.amp.GradScaler("cuda")
        with lib.amp.autocast("cuda", dtype=lib.float16), lib.autocast("cuda"):
            y = lib.ones(2, 2) @ lib.ones(2, 2)
    assert any("isabling" in str(w.message) for w in caught)
    assert y.dtype == lib.float32 and not scaler.is_enabled() and scaler.get_scale() == 1.0
    w = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.5)
    scaler.scale((w * w).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0, 0] and scaler.state_dict() == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib.amp.GradScaler("cuda", enabled=False)
        with lib.autocast("cuda", enabled=False):
            pass


# ---- Default devices


def made():
    """The devices of tensors made in all the ways that give no device."""
    tensors = [
        kiln.zeros(2), kiln.ones((2,)), kiln.empty(1), kiln.full((2,), 3.0), kiln.tensor([1.0]),
        kiln.rand(2), kiln.randn(2), kiln.randint(3, (2,)), kiln.randperm(3), kiln.arange(3),
        kiln.linspace(0, 1, 3), kiln.eye(2), kiln.hann_window(4), kiln.fft.fftfreq(4),
        kiln.as_tensor([1.0]), kiln.nn.Linear(2, 2).weight, kiln.nn.Embedding(2, 2).weight,
    ]  # fmt: skip
    return {str(t.device) for t in tensors}


def test_with_device():
    x = kiln.ones(2)
    with kiln.device("reference") as device:
        assert device == kiln.device("reference") == kiln.get_default_device()
        assert made() == {"reference"}
        assert kiln.zeros_like(x).device.type == (x * 2).device.type == "cpu"
        assert kiln.zeros(2, device="cpu").device.type == "cpu"
        with kiln.device("cpu"):
            assert made() == {"cpu"}
            with device:
                assert kiln.zeros(1).device.type == "reference"
        assert kiln.zeros(1).device.type == "reference"
    assert made() == {"cpu"}


def test_with_device_ends_with_errors(lib):
    with pytest.raises(KeyError):
        with lib.device("cpu"):
            raise KeyError("mine")
    assert lib.get_default_device() == lib.device("cpu")
    with pytest.raises(KeyError):
        with kiln.device("reference"):
            raise KeyError("mine")
    assert kiln.get_default_device() == kiln.device("cpu")


def test_default_devices_are_of_a_thread():
    seen = []

    def look():
        seen.append(str(kiln.zeros(1).device))
        kiln.set_default_device("reference")
        seen.append(str(kiln.zeros(1).device))

    with kiln.device("reference"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == ["cpu", "reference"] and kiln.zeros(1).device.type == "cpu"


def test_set_default_device():
    kiln.set_default_device("reference")
    assert made() == {"reference"}
    with kiln.device("cpu"):
        assert made() == {"cpu"}
    assert made() == {"reference"}
    kiln.set_default_device(None)
    assert made() == {"cpu"} and kiln.get_default_device() == kiln.device("cpu")
    for wrong, error in (("cuda", kiln.errors.DeviceError), ("", kiln.errors.DeviceError)):
        with pytest.raises(error):
            kiln.set_default_device(wrong)
    with pytest.raises(TypeError):
        kiln.set_default_device(3.5)
    assert made() == {"cpu"}


# ---- type()


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_types_have_torchs_names():
    import torch

    for name in (
        "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
        "bool", "complex64", "complex128",
    ):  # fmt: skip
        mine, theirs = (lib.zeros(2, dtype=getattr(lib, name)) for lib in (kiln, torch))
        assert mine.type() == theirs.type()
        assert kiln.zeros(2).type(mine.type()).dtype == mine.dtype


def test_type_casts(lib):
    x = lib.tensor([1.5])
    assert x.type("torch.DoubleTensor").dtype == lib.float64
    assert x.type(lib.LongTensor).tolist() == [1]
    assert x.type(lib.float64).dtype == lib.float64 and x.type(lib.FloatTensor) is x
    for wrong in ("torch.cuda.FloatTensor", "torch.OddTensor", 3):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            x.type(wrong)
    assert x.type(dtype=lib.int32).dtype == lib.int32


def test_types_of_kilns_own():
    x = kiln.ones(2)
    assert x.type("kiln.HalfTensor").dtype == x.type("float16").dtype == kiln.float16
    assert x.to("reference").type() == "torch.reference.FloatTensor"
    with pytest.raises(kiln.errors.DeviceError, match="cuda"):
        x.type("torch.cuda.FloatTensor")
