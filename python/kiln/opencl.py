"""GPUs and other OpenCL devices: whether there are any, and their memory.

Tensors are made on or moved to device "opencl" ("opencl:1" for the second): kiln.ones(3,
device="opencl"), model.to("opencl"). Without a driver or a device is_available() is False, absence()
says what is missing, and the device is a DeviceError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C
from .errors import DeviceError

if TYPE_CHECKING:
    from typing import Any

    from ._typing import DeviceLike

__all__ = [
    "absence", "device_count", "empty_cache", "get_device_name", "get_device_properties",
    "is_available", "memory_allocated", "memory_stats", "pinned_memory_stats", "reset_memory_stats",
    "set_memory_limit", "synchronize",
]  # fmt: skip


def _index(device):
    if device is None:
        return 0
    device = _C._device(device)
    if device.type != "opencl":
        raise DeviceError(f"opencl: another kind of device; got '{device}'; expected 'opencl'")
    return device.index or 0


def is_available() -> bool:
    """Whether there is an OpenCL device.

    >>> isinstance(kiln.opencl.is_available(), bool)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """How many there are.

    >>> kiln.opencl.device_count() >= 0
    True
    """
    return _C._opencl_device_count()


def absence() -> str:
    """Why there is none: what is missing, and how to install it. Empty where there is one.

    >>> isinstance(kiln.opencl.absence(), str)
    True
    """
    return _C._opencl_absence()


def get_device_properties(device: DeviceLike | int | None = None) -> dict[str, Any]:
    """A dict: name, vendor, driver, total_memory, has_float64. DeviceError without that device.

    >>> if kiln.opencl.is_available():
    ...     assert kiln.opencl.get_device_properties()["total_memory"] > 0
    """
    return _C._opencl_device_properties(_index(device))


def get_device_name(device: DeviceLike | int | None = None) -> str:
    """The device's name.

    >>> if kiln.opencl.is_available():
    ...     assert kiln.opencl.get_device_name()
    """
    return get_device_properties(device)["name"]


def synchronize(device: DeviceLike | int | None = None) -> None:
    """Waits for all that was computed there.

    Raises what kernels found wrong and nobody was told: IndexError, ValueError.

    >>> if kiln.opencl.is_available():
    ...     kiln.opencl.synchronize()
    """
    _C._opencl_synchronize(_index(device))


def memory_stats(device: DeviceLike | int | None = None) -> dict[str, Any]:
    """A dict as kiln.memory_stats() gives, of the device's memory.

    >>> if kiln.opencl.is_available():
    ...     assert isinstance(kiln.opencl.memory_stats(), dict)
    """
    return _C._opencl_memory_stats(_index(device))


def memory_allocated(device: DeviceLike | int | None = None) -> int:
    """The bytes that tensors hold there.

    >>> if kiln.opencl.is_available():
    ...     assert kiln.opencl.memory_allocated() >= 0
    """
    return memory_stats(device)["bytes_in_use"]


def pinned_memory_stats(device: DeviceLike | int | None = None) -> dict[str, Any]:
    """The same of the host's memory that Tensor.pin_memory() and copies without waiting take.

    >>> if kiln.opencl.is_available():
    ...     assert kiln.opencl.pinned_memory_stats()["bytes_in_use"] >= 0
    """
    return _C._opencl_pinned_memory_stats(_index(device))


def reset_memory_stats(device: DeviceLike | int | None = None) -> None:
    """Sets the counters of allocations to 0 and the peak to what is in use.

    >>> if kiln.opencl.is_available():
    ...     kiln.opencl.reset_memory_stats()
    """
    _C._opencl_reset_memory_stats(_index(device))


def empty_cache(device: DeviceLike | int | None = None) -> None:
    """Gives the driver back what was freed and kept, of pinned memory too.

    >>> if kiln.opencl.is_available():
    ...     kiln.opencl.empty_cache()
    """
    _C._opencl_empty_cache(_index(device))


def set_memory_limit(bytes: int, device: DeviceLike | int | None = None) -> None:
    """The most that may be allocated there; what would need more raises ValueError.

    >>> if kiln.opencl.is_available():
    ...     kiln.opencl.set_memory_limit(2**40)
    """
    _C._opencl_set_memory_limit(bytes, _index(device))
