"""torch.cuda's names: whether there are CUDA devices, their memory, their events.

Tensors are made on or moved to device "cuda" ("cuda:1" for the second). Without a driver or a device
is_available() is False, absence() says what is missing, and what needs a device raises DeviceError, a
RuntimeError. All work of a device is one queue, done in the order in which it was asked for: Stream
objects name that queue.
"""

from __future__ import annotations

import threading as _threading
from typing import TYPE_CHECKING

from .. import _C, errors
from .._tensor_types import CLASSES as _CLASSES, _DTYPES as _NAMED
from . import amp as amp
from ._libraries import announce as _announce
from ..errors import OutOfMemoryError as OutOfMemoryError

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


_announce()
_current = _threading.local()


def _fail(name):
    raise errors.DeviceError(
        f"cuda.{name}: there is no CUDA device: {absence()};"
        " try kiln.device('cuda' if kiln.cuda.is_available() else 'cpu')"
    )


def _index(device, name):
    """The number of a device of this kind; the current one for None."""
    if not is_available():
        _fail(name)
    if device is None:
        return getattr(_current, "index", 0)
    if isinstance(device, int) and not isinstance(device, bool):
        index = device
    else:
        known = _C._device(device)
        if known.type != "cuda":
            raise errors.DeviceError(
                f"cuda.{name}: another kind of device; got '{known}'; expected 'cuda'"
            )
        index = known.index or 0
    if not 0 <= index < device_count():
        raise errors.DeviceError(
            f"cuda.{name}: no such device; got {index}; expected 0 to {device_count() - 1}"
        )
    return index


def is_available() -> bool:
    """Whether there is a CUDA device."""
    return device_count() > 0


def device_count() -> int:
    """How many there are."""
    return _C._cuda_device_count()


def absence() -> str:
    """Why there is none: what is missing, and how to install it. Empty where there is one."""
    return _C._cuda_absence()


def is_initialized() -> bool:
    """Whether there is a device; each is opened when it is first used."""
    return is_available()


def init() -> None:
    """Nothing to do where there is a device; DeviceError where there is none."""
    _index(None, "init")


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a device: bfloat16 is kept in 16 bits and computed in 32 on every one."""
    return is_available() and including_emulation


def get_arch_list() -> list[str]:
    """What kernels are compiled for ahead of time, where there is a device."""
    return ["sm_80", "sm_90a"] if is_available() else []


def current_device() -> int:
    """The number that set_device() or device() chose in this thread, or 0."""
    return _index(None, "current_device")


def set_device(device: DeviceLike | int) -> None:
    """Chooses the device that functions of this module mean by None, in this thread.

    "cuda" without a number is the first device all the same.
    """
    _current.index = _index(device, "set_device")


def get_device_properties(device: DeviceLike | int | None = None) -> DeviceProperties:
    """Name, memory and compute capability."""
    return DeviceProperties(_C._cuda_device_properties(_index(device, "get_device_properties")))


def get_device_name(device: DeviceLike | int | None = None) -> str:
    """The device's name."""
    return _C._cuda_device_properties(_index(device, "get_device_name"))["name"]


def get_device_capability(device: DeviceLike | int | None = None) -> tuple[int, int]:
    """The compute capability: (9, 0) for Hopper."""
    known = _C._cuda_device_properties(_index(device, "get_device_capability"))
    return known["major"], known["minor"]


class DeviceProperties:
    """What get_device_properties() gives: name, vendor, driver, total_memory, major, minor."""

    name: str
    vendor: str
    driver: str
    total_memory: int
    major: int
    minor: int

    def __init__(self, known: dict[str, Any]) -> None:
        self.__dict__.update(known)

    def __repr__(self) -> str:
        return (
            f"DeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB)"
        )


class device:
    """Chooses a device for this module's functions within a with block, or not (None, -1)."""

    def __init__(self, device: DeviceLike | int | None) -> None:
        self.idx = -1 if device is None or device == -1 else _index(device, "device")
        if not is_available():
            _fail("device")

    def __enter__(self) -> None:
        self._before = getattr(_current, "index", 0)
        if self.idx >= 0:
            _current.index = self.idx

    def __exit__(self, *error: object) -> None:
        _current.index = self._before


def manual_seed(seed: int) -> None:
    """Nothing to do: every device's random numbers come from what kiln.manual_seed seeds."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Nothing to do, as manual_seed()."""
    int(seed)


def seed() -> None:
    """Nothing to do, as manual_seed()."""


def seed_all() -> None:
    """Nothing to do, as manual_seed()."""


def initial_seed() -> int:
    """kiln.initial_seed(): the seed that every device draws from. DeviceError without a device."""
    _index(None, "initial_seed")
    return _C.initial_seed()


def get_rng_state(device: DeviceLike | int = "cuda") -> Tensor:
    """kiln.get_rng_state(): the state that every device draws from. DeviceError without a device."""
    _index(device, "get_rng_state")
    return _C.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """get_rng_state() of each device: an empty list without a device."""
    return [_C.get_rng_state() for _ in range(device_count())]


def set_rng_state(new_state: Tensor, device: DeviceLike | int = "cuda") -> None:
    """kiln.set_rng_state(): the state that every device, and the CPU, draw from.

    Nothing without a device, as in PyTorch.
    """
    if is_available():
        _index(device, "set_rng_state")
        _C.set_rng_state(new_state)


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Takes what get_rng_state_all() gave, as set_rng_state() does: nothing without a device."""
    for state in list(new_states)[:1]:
        set_rng_state(state)


def _all_or(device, name):
    """Every device for None, none where there is none; else the one."""
    if device is None:
        return range(device_count())
    return [_index(device, name)]


def empty_cache() -> None:
    """Gives the driver back what was freed and kept, of every device that is there."""
    for index in range(device_count()):
        _C._cuda_empty_cache(index)


def synchronize(device: DeviceLike | int | None = None) -> None:
    """Waits for all that was computed there; for None on the current device, where there is one.

    Raises what kernels found wrong and nobody was told: IndexError, ValueError.
    """
    if device is not None or is_available():
        _C._cuda_synchronize(_index(device, "synchronize"))


def memory_stats(device: DeviceLike | int | None = None) -> dict[str, Any]:
    """A dict as kiln.memory_stats() gives, of the device's memory; empty without a device."""
    if device is None and not is_available():
        return {}
    return _C._cuda_memory_stats(_index(device, "memory_stats"))


def host_memory_stats() -> dict[str, Any]:
    """A dict as kiln.memory_stats() gives, of the host's memory that Tensor.pin_memory() and copies
    without waiting take: of all devices together; empty without a device."""
    total: dict[str, Any] = {}
    for index in range(device_count()):
        for name, value in _C._cuda_pinned_memory_stats(index).items():
            total[name] = total.get(name, 0) + value
    return total


def memory_allocated(device: DeviceLike | int | None = None) -> int:
    """The bytes that tensors hold."""
    return memory_stats(device).get("bytes_in_use", 0)


def max_memory_allocated(device: DeviceLike | int | None = None) -> int:
    """The most bytes that tensors held since reset_peak_memory_stats()."""
    return memory_stats(device).get("peak_bytes_in_use", 0)


def memory_reserved(device: DeviceLike | int | None = None) -> int:
    """The bytes that tensors hold, and those that are kept for the next ones."""
    stats = memory_stats(device)
    return stats.get("bytes_in_use", 0) + stats.get("bytes_cached", 0)


def max_memory_reserved(device: DeviceLike | int | None = None) -> int:
    """The larger of max_memory_allocated() and memory_reserved(): no other peak is counted."""
    return max(max_memory_allocated(device), memory_reserved(device))


def reset_peak_memory_stats(device: DeviceLike | int | None = None) -> None:
    """Sets the counters of allocations to 0 and the peak to what is in use."""
    for index in _all_or(device, "reset_peak_memory_stats"):
        _C._cuda_reset_memory_stats(index)


def memory_cached(device: DeviceLike | int | None = None) -> int:
    """memory_reserved() under PyTorch's older name."""
    return memory_reserved(device)


def max_memory_cached(device: DeviceLike | int | None = None) -> int:
    """max_memory_reserved() under PyTorch's older name."""
    return max_memory_reserved(device)


def reset_max_memory_allocated(device: DeviceLike | int | None = None) -> None:
    """reset_peak_memory_stats() under PyTorch's older name."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: DeviceLike | int | None = None) -> None:
    """reset_peak_memory_stats() under PyTorch's older name."""
    reset_peak_memory_stats(device)


def ipc_collect() -> None:
    """Nothing to do where there is a device, for no memory is shared with other processes.

    DeviceError without a device.
    """
    _index(None, "ipc_collect")


def set_per_process_memory_fraction(
    fraction: float, device: DeviceLike | int | None = None
) -> None:
    """The most that may be allocated, as a part of the device's memory: 0 to 1."""
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"cuda.set_per_process_memory_fraction: got {fraction}; expected 0 to 1"
        )
    index = _index(device, "set_per_process_memory_fraction")
    total = _C._cuda_device_properties(index)["total_memory"]
    _C._cuda_set_memory_limit(int(total * fraction), index)


def __getattr__(name: str) -> Any:
    # One for each device that is there, which is the one that all draw from.
    if name == "default_generators":
        from ..random import default_generator

        return (default_generator,) * device_count()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Event:
    """A place in a device's queue; elapsed_time() is the device's time between two.

    enable_timing: for elapsed_time().

    >>> if kiln.cuda.is_available():
    ...     kiln.cuda.Event().record()
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if interprocess:
            raise errors.DeviceError("cuda.Event: events of other processes are not there")
        if not is_available():
            _fail("Event")
        self._timed = enable_timing
        self._event: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """The place behind all that was asked for so far."""
        index = getattr(_current, "index", 0) if stream is None else stream.device_index
        self._event = _C._cuda_record_event(index)

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to do: what is asked for from here on is behind the event anyway."""

    def query(self) -> bool:
        """Whether all before the event is done; True where it was not recorded."""
        return self._event is None or self._event.is_passed()

    def synchronize(self) -> None:
        """Waits until all before the event is done."""
        if self._event is not None:
            self._event.wait()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`; both must be done."""
        if not (self._timed and end_event._timed):
            raise ValueError("cuda.Event: expected two events made with enable_timing=True")
        if self._event is None or end_event._event is None:
            raise ValueError("cuda.Event: expected two events that were recorded")
        return end_event._event.milliseconds_since(self._event)


class Stream:
    """The queue of a device. Every stream of a device is the same one, in the order of asking.

    device: the current one for None. priority: without effect.

    >>> if kiln.cuda.is_available():
    ...     kiln.cuda.Stream().synchronize()
    """

    def __init__(self, device: DeviceLike | int | None = None, priority: int = 0) -> None:
        self.device_index = _index(device, "Stream")

    @property
    def device(self) -> Any:
        """The device."""
        return _C._device(f"cuda:{self.device_index}")

    def synchronize(self) -> None:
        """Waits for all that was computed on the device."""
        _C._cuda_synchronize(self.device_index)

    def query(self) -> bool:
        """Whether all that was asked for is done."""
        return _C._cuda_record_event(self.device_index).is_passed()

    def record_event(self, event: Event | None = None) -> Event:
        """The event, recorded here; a new one for None."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Waits for an event of another device; for one of this device there is nothing to do."""
        event.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        """Waits for another device's queue; for this device's there is nothing to do."""
        if stream.device_index != self.device_index:
            stream.synchronize()

    def __enter__(self) -> Stream:
        self._chosen = device(self.device_index)
        self._chosen.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._chosen.__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device_index == self.device_index

    def __hash__(self) -> int:
        return hash(("cuda stream", self.device_index))


def current_stream(device: DeviceLike | int | None = None) -> Stream:
    """The device's queue."""
    return Stream(device)


def default_stream(device: DeviceLike | int | None = None) -> Stream:
    """The device's queue."""
    return Stream(device)


class StreamContext:
    """What stream() gives: a with block in which functions of this module mean the stream's device by
    None. None: nothing changes."""

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None and not is_available():
            _fail("StreamContext")
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


def stream(stream: Stream | None) -> StreamContext:
    """For a with block: functions of this module mean the stream's device by None."""
    if stream is not None and not is_available():
        _fail("stream")
    return StreamContext(stream)


def _not_there(name):
    def function(*args, **kwargs):
        if not is_available():
            _fail(name)
        raise errors.DeviceError(f"cuda.{name}: not there in Kiln")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises DeviceError: there is nothing of the kind in Kiln."
    return function


if TYPE_CHECKING:
    mem_get_info: Callable[..., Any]
    memory_summary: Callable[..., Any]
    utilization: Callable[..., Any]


for _name in (
    "mem_get_info", "memory_summary", "utilization",
):  # fmt: skip
    globals()[_name] = _not_there(_name)


class _NotThere:
    """Cannot be made: there is nothing of the kind in Kiln."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        if not is_available():
            _fail(name)
        raise errors.DeviceError(f"cuda.{name}: not there in Kiln")


if TYPE_CHECKING:

    class CUDAGraph(_NotThere): ...

    class ExternalStream(_NotThere): ...

    class MemPool(_NotThere): ...

    class graph(_NotThere): ...  # noqa: N801  PyTorch's name


_storages = [_name.replace("Tensor", "Storage") for _name in _NAMED]
for _name in ("CUDAGraph", "ExternalStream", "MemPool", "graph", *_CLASSES, *_storages):
    globals()[_name] = type(_name, (_NotThere,), {"__doc__": _NotThere.__doc__})
del _name, _storages
