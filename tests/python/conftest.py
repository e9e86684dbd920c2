import importlib.util
import signal

import pytest

import kiln

HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_report_header(config):
    if HAS_TORCH:
        import torch

        return f"PyTorch {torch.__version__}: parity tests run"
    return "no PyTorch in this environment: parity tests are SKIPPED (script/bootstrap --peers)"


@pytest.fixture(autouse=True)
def same_start():
    """Each test starts from the same random numbers and defaults."""
    kiln.manual_seed(0)
    yield
    kiln.set_default_dtype(kiln.float32)
    kiln.set_default_device(None)
    kiln.set_printoptions(profile="default")
    assert kiln.is_grad_enabled()


@pytest.fixture
def ctrl_c_counts():
    """What a shell starts in the background ignores Ctrl-C, and so would the runs of a test."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=["kiln", "torch"])
def lib(request):
    """Kiln, and PyTorch where it is: what a test claims must hold for both."""
    if request.param == "torch":
        return pytest.importorskip("torch")
    return kiln
