"""Anomaly mode: a backward pass that fails, or meets a NaN, names the forward op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C

if TYPE_CHECKING:
    from typing import Self


class set_detect_anomaly:
    """Anomaly mode on or off, at once and for all threads; as a context manager, until its end.

    While it is on, each recorded op remembers the Python stack, and an error in a backward pass,
    or with check_nan a gradient with NaN, shows where the op that it belongs to was called. Slow.

    >>> with kiln.autograd.set_detect_anomaly(True):
    ...     kiln.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_detect_anomaly(bool(mode), bool(check_nan))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _C._set_detect_anomaly(*self._before)


class detect_anomaly:
    """Anomaly mode within a with block.

    >>> with kiln.autograd.detect_anomaly():
    ...     kiln.is_anomaly_enabled()
    True
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._guard: set_detect_anomaly | None = None

    def __enter__(self) -> Self:
        self._guard = set_detect_anomaly(True, self._check_nan)
        return self

    def __exit__(self, *_: object) -> None:
        if self._guard is not None:
            self._guard.__exit__()
