"""torch.accelerator's names: the CUDA device where there is one, for programs that do not say which
kind they need.

kiln.cuda has the same functions and says more; OpenCL devices are kiln.opencl's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C, cuda, errors

if TYPE_CHECKING:
    from typing import Any

    from ._typing import DeviceLike
    from .cuda import Stream

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream",
    "device_count", "device_index", "empty_cache", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "synchronize",
]  # fmt: skip


def _needed(name: str) -> None:
    if not cuda.is_available():
        raise errors.DeviceError(
            f"accelerator.{name}: there is no accelerator: {cuda.absence()}; try "
            "kiln.accelerator.is_available() first"
        )


def is_available() -> bool:
    """Whether there is one.

    >>> kiln.accelerator.is_available() == (kiln.accelerator.device_count() > 0)
    True
    """
    return cuda.is_available()


def device_count() -> int:
    """How many there are.

    >>> kiln.accelerator.device_count() == kiln.cuda.device_count()
    True
    """
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """kiln.device("cuda") where there is one, else None. check_available: it is checked either way.

    >>> device = kiln.accelerator.current_accelerator() or kiln.device("cpu")
    >>> kiln.ones(1, device=device).device.type == device.type
    True
    """
    return _C.device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The number of the device that set_device_index() chose, or 0. DeviceError without one.

    >>> kiln.accelerator.current_device_index() if kiln.accelerator.is_available() else 0
    0
    """
    _needed("current_device_index")
    return cuda.current_device()


def set_device_index(device: DeviceLike | int | None, /) -> None:
    """Chooses the device that None means, in this thread; None changes nothing.

    >>> if kiln.accelerator.is_available():
    ...     kiln.accelerator.set_device_index(0)
    """
    _needed("set_device_index")
    if device is not None:
        cuda.set_device(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


class device_index:  # noqa: N801  PyTorch's name
    """Chooses a device within a with block, or not (None).

    >>> if kiln.accelerator.is_available():
    ...     with kiln.accelerator.device_index(0):
    ...         x = kiln.ones(1, device="cuda")
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            _needed("device_index")
            self._before = cuda.current_device()
            cuda.set_device(self.idx)

    def __exit__(self, *error: object) -> None:
        if self.idx is not None:
            cuda.set_device(self._before)


def synchronize(device: DeviceLike | int | None = None, /) -> None:
    """Waits until a device has done all that it was asked for. DeviceError without one.

    >>> if kiln.accelerator.is_available():
    ...     kiln.accelerator.synchronize()
    """
    _needed("synchronize")
    cuda.synchronize(device)


def current_stream(device: DeviceLike | int | None = None, /) -> Stream:
    """The queue of a device's work. DeviceError without one.

    >>> if kiln.accelerator.is_available():
    ...     kiln.accelerator.current_stream().synchronize()
    """
    _needed("current_stream")
    return cuda.current_stream(device)


def empty_cache() -> None:
    """Gives memory that is kept for later back to the devices. DeviceError without one.

    >>> if kiln.accelerator.is_available():
    ...     kiln.accelerator.empty_cache()
    """
    _needed("empty_cache")
    cuda.empty_cache()


def memory_allocated(device_index: DeviceLike | int | None = None, /) -> int:
    """The bytes of the tensors of the device device_index. DeviceError without one.

    >>> used = kiln.accelerator.memory_allocated() if kiln.accelerator.is_available() else 0
    """
    _needed("memory_allocated")
    return cuda.memory_allocated(device_index)


def max_memory_allocated(device_index: DeviceLike | int | None = None, /) -> int:
    """The most that memory_allocated(device_index) was since
    reset_peak_memory_stats(). DeviceError without one.

    >>> used = kiln.accelerator.max_memory_allocated() if kiln.accelerator.is_available() else 0
    """
    _needed("max_memory_allocated")
    return cuda.max_memory_allocated(device_index)


def memory_reserved(device_index: DeviceLike | int | None = None, /) -> int:
    """The bytes of the tensors of the device device_index, and what is kept for later ones.
    DeviceError without one.

    >>> used = kiln.accelerator.memory_reserved() if kiln.accelerator.is_available() else 0
    """
    _needed("memory_reserved")
    return cuda.memory_reserved(device_index)


def max_memory_reserved(device_index: DeviceLike | int | None = None, /) -> int:
    """The most that memory_reserved(device_index) was since
    reset_peak_memory_stats(). DeviceError without one.

    >>> used = kiln.accelerator.max_memory_reserved() if kiln.accelerator.is_available() else 0
    """
    _needed("max_memory_reserved")
    return cuda.max_memory_reserved(device_index)


def memory_stats(device_index: DeviceLike | int | None = None, /) -> dict[str, Any]:
    """What cuda.memory_stats(device_index) says. DeviceError without one.

    >>> found = kiln.accelerator.memory_stats() if kiln.accelerator.is_available() else {}
    """
    _needed("memory_stats")
    return cuda.memory_stats(device_index)


def reset_peak_memory_stats(device_index: DeviceLike | int | None = None, /) -> None:
    """The most of the device device_index begins anew. DeviceError without one.

    >>> if kiln.accelerator.is_available():
    ...     kiln.accelerator.reset_peak_memory_stats()
    """
    _needed("reset_peak_memory_stats")
    cuda.reset_peak_memory_stats(device_index)
