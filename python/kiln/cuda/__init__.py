"""torch.cuda's names, for programs that ask whether there is such a device: there is none.

Questions have true answers (is_available() is False, device_count() is 0), seeds and caches have
nothing to do, and what needs a device raises DeviceError, a RuntimeError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._tensor_types import CLASSES as _CLASSES
from . import amp as amp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor
    from .._typing import DeviceLike
    from .._tensor_types import (
        BFloat16Tensor as BFloat16Tensor,
        BoolTensor as BoolTensor,
        ByteTensor as ByteTensor,
        CharTensor as CharTensor,
        DoubleTensor as DoubleTensor,
        FloatTensor as FloatTensor,
        HalfTensor as HalfTensor,
        IntTensor as IntTensor,
        LongTensor as LongTensor,
        ShortTensor as ShortTensor,
    )


def is_available() -> bool:
    """False: Kiln has no backend for CUDA devices."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def get_arch_list() -> list[str]:
    """Empty."""
    return []


def manual_seed(seed: int) -> None:
    """Nothing to do: kiln.manual_seed seeds the generator of the CPU."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Nothing to do."""
    int(seed)


def seed() -> None:
    """Nothing to do."""


def seed_all() -> None:
    """Nothing to do."""


def get_rng_state_all() -> list[Tensor]:
    """Empty."""
    return []


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Takes what get_rng_state_all() gave: no states."""
    if len(new_states):
        _fail("set_rng_state_all")


def empty_cache() -> None:
    """Nothing to do: kiln.empty_cache returns the cached memory of the CPU."""


def synchronize(device: DeviceLike | int | None = None) -> None:
    """Nothing to do: an op is done when it returns. Raises DeviceError when a device is named."""
    if device is not None:
        _fail("synchronize")


def memory_allocated(device: DeviceLike | int | None = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: DeviceLike | int | None = None) -> int:
    """0."""
    return 0


def memory_reserved(device: DeviceLike | int | None = None) -> int:
    """0."""
    return 0


def max_memory_reserved(device: DeviceLike | int | None = None) -> int:
    """0."""
    return 0


def memory_stats(device: DeviceLike | int | None = None) -> dict[str, Any]:
    """Empty."""
    return {}


def reset_peak_memory_stats(device: DeviceLike | int | None = None) -> None:
    """Nothing to do."""


def _fail(name):
    raise errors.DeviceError(
        f"cuda.{name}: there is no CUDA device; Kiln computes on 'cpu';"
        " try kiln.device('cuda' if kiln.cuda.is_available() else 'cpu')"
    )


def _needs_device(name):
    def function(*args, **kwargs):
        _fail(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises DeviceError: there is no CUDA device."
    return function


if TYPE_CHECKING:
    current_device: Callable[..., Any]
    current_stream: Callable[..., Any]
    default_stream: Callable[..., Any]
    get_device_capability: Callable[..., Any]
    get_device_name: Callable[..., Any]
    get_device_properties: Callable[..., Any]
    get_rng_state: Callable[..., Any]
    init: Callable[..., Any]
    initial_seed: Callable[..., Any]
    ipc_collect: Callable[..., Any]
    mem_get_info: Callable[..., Any]
    memory_summary: Callable[..., Any]
    set_device: Callable[..., Any]
    set_per_process_memory_fraction: Callable[..., Any]
    set_rng_state: Callable[..., Any]
    stream: Callable[..., Any]
    utilization: Callable[..., Any]


for _name in (
    "current_device", "current_stream", "default_stream", "get_device_capability",
    "get_device_name", "get_device_properties", "get_rng_state", "init", "initial_seed",
    "ipc_collect", "mem_get_info", "memory_summary", "set_device", "set_rng_state",
    "set_per_process_memory_fraction", "stream", "utilization",
):  # fmt: skip
    globals()[_name] = _needs_device(_name)


class _NeedsDevice:
    """Cannot be made: there is no CUDA device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _fail(type(self).__name__)


if TYPE_CHECKING:

    class CUDAGraph(_NeedsDevice): ...

    class Event(_NeedsDevice): ...

    class ExternalStream(_NeedsDevice): ...

    class MemPool(_NeedsDevice): ...

    class Stream(_NeedsDevice): ...

    class device(_NeedsDevice): ...



for _name in ("CUDAGraph", "Event", "ExternalStream", "MemPool", "Stream", "device", *_CLASSES):
    globals()[_name] = type(_name, (_NeedsDevice,), {"__doc__": _NeedsDevice.__doc__})
del _name
