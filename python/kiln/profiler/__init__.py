"""What every op costs: `with kiln.profiler.profile() as p: ...`, then p.table()."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import _C

if TYPE_CHECKING:
    from typing import Any, Self

    from .._typing import StrPath

__all__ = ["profile"]


class profile:
    """Counts ops on all threads within a with block: calls, time, bytes, allocations.

    table() is the text to print, rows() the same as dicts (op, count, seconds, bytes,
    allocations, device_seconds; the ops that took longest first), export_chrome_trace(path) a
    file for chrome://tracing or ui.perfetto.dev. device_seconds are a GPU's own, for its kernels
    and copies. A profile may be read while it runs, and again later.

    >>> with kiln.profiler.profile() as profile:
    ...     _ = kiln.ones(2) + 1
    >>> any("add" in row["op"] for row in profile.rows())
    True
    """

    def __init__(self) -> None:
        self._profile: _C._Profile | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Counts from here on."""
        self._profile = _C._Profile()

    def stop(self) -> None:
        """Counts no longer."""
        self._taken().stop()

    def _taken(self):
        if self._profile is None:
            raise RuntimeError("profile: nothing was profiled; enter it, or call start(), first")
        return self._profile

    def rows(self) -> list[Any]:
        """A dict for each op, the ones that took longest first."""
        return self._taken().rows()

    def table(self) -> str:
        """The rows as text."""
        return self._taken().table()

    def trace(self) -> str:
        """Chrome's trace format, as text."""
        return self._taken().trace()

    def export_chrome_trace(self, path: StrPath) -> None:
        """Writes a file for chrome://tracing or ui.perfetto.dev."""
        self._taken().write_trace(os.fspath(path))
