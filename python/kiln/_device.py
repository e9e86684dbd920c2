"""The device of new tensors: a default for each thread, and `with device:`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from . import _C

if TYPE_CHECKING:
    from ._C import device
    from ._typing import DeviceLike


class _Entered(threading.local):
    def __init__(self):
        self.before = []  # the defaults that the end of each with statement brings back


_entered = _Entered()


def set_default_device(device: DeviceLike | None) -> None:
    """Where this thread makes new tensors, for which no device is given; None: on the CPU.

    It counts for the creation functions and for layers' parameters; tensors made from others (ops,
    *_like, new_*) stay with those. Raises DeviceError for an unknown device.

    >>> kiln.set_default_device("reference")
    >>> kiln.zeros(1).device.type
    'reference'
    >>> kiln.set_default_device(None)
    """
    _C._set_default_device(_C._device("cpu" if device is None else device))


def get_default_device() -> device:
    """Where this thread makes new tensors.

    >>> kiln.get_default_device() == kiln.device("cpu")
    True
    """
    return _C._default_device()  # type: ignore[return-value]


def _enter(self):
    """New tensors of this thread are made here, until the with statement ends."""
    _entered.before.append(_C._default_device())
    _C._set_default_device(self)
    return self


def _exit(self, *_):
    _C._set_default_device(_entered.before.pop())


_C.device.__enter__ = _enter  # type: ignore[method-assign]
_C.device.__exit__ = _exit  # type: ignore[method-assign, assignment]
