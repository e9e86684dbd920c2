"""What every op costs: `with kiln.profiler.profile() as p: ...`, then p.table()."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

from .. import _C
from ._averages import Average, Averages
from ._schedule import (
    ProfilerAction,
    ProfilerActivity,
    schedule,
    tensorboard_trace_handler,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

    from .._typing import StrPath

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
    "tensorboard_trace_handler",
]  # fmt: skip


_running: list[profile] = []
_lock = threading.Lock()


class record_function(contextlib.ContextDecorator):
    """A block or a function whose time profiles list under its name, beside the ops in it.

    name: what rows() and table() call it. args: PyTorch's, not looked at.

    >>> with kiln.profiler.profile() as profile:
    ...     with kiln.profiler.record_function("forward"):
    ...         _ = kiln.ones(2) + 1
    >>> [row["count"] for row in profile.rows() if row["op"] == "forward"]
    [1]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._begun: list[float] = []

    def __enter__(self) -> Self:
        self._begun.append(time.perf_counter())
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._begun.pop()
        with _lock:
            for one in _running:
                one._add_block(self.name, seconds)


class profile:
    """Counts ops on all threads within a with block: calls, time, bytes, allocations.

    table() is the text to print, rows() the same as dicts (op, count, seconds, bytes,
    allocations, flops, device_seconds; the ops that took longest first), export_chrome_trace(path)
    a file for chrome://tracing or ui.perfetto.dev. flops are those of products, by their shapes.
    device_seconds are a GPU's own, for its kernels and copies. A profile may be read while it runs,
    and again later.

    schedule: which steps are profiled, with a call of step() after each (see
    kiln.profiler.schedule). on_trace_ready: called with the profile when a schedule's active steps
    are over, or at the end. activities and options (record_shapes, with_stack, ...) are PyTorch's,
    and change nothing.

    >>> with kiln.profiler.profile() as profile:
    ...     _ = kiln.ones(2) + 1
    >>> any("add" in row["op"] for row in profile.rows())
    True
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        **options: Any,
    ) -> None:
        self._profile: _C._Profile | None = None
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._blocks: dict[str, list[float]] = {}
        self._counts = False
        self.step_num = 0
        known = {
            "record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules",
            "experimental_config", "execution_trace_observer", "acc_events", "use_cuda",
            "custom_trace_id_callback", "post_processing_timeout_s",
        }  # fmt: skip
        if unknown := set(options) - known:
            raise TypeError(f"profile: unknown options {sorted(unknown)}; PyTorch has {sorted(known)}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _begin(self):
        self._profile = _C._Profile()
        self._blocks = {}
        self._counts = True
        with _lock:
            _running.append(self)

    def _end(self):
        with _lock:
            if self in _running:
                _running.remove(self)
        if self._counts:
            self._counts = False
            self._taken().stop()
            return True
        return False

    def _add_block(self, name, seconds):
        entry = self._blocks.setdefault(name, [0, 0.0])
        entry[0] += 1
        entry[1] += seconds

    def _is_active(self):
        active = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        return self._schedule is None or self._schedule(self.step_num) in active

    def start(self) -> None:
        """Counts from here on, if the schedule says so."""
        self.step_num = 0
        if self._is_active():
            self._begin()

    def stop(self) -> None:
        """Counts no longer."""
        if self._schedule is None:
            self._taken()
        if self._end() and self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def step(self) -> None:
        """A step of the schedule is over."""
        if self._schedule is None:
            self.step_num += 1
            return
        saves = self._schedule(self.step_num) == ProfilerAction.RECORD_AND_SAVE
        if saves and self._end() and self._on_trace_ready is not None:
            self._on_trace_ready(self)
        self.step_num += 1
        if not self._counts and self._is_active():
            self._begin()

    def _taken(self):
        if self._profile is None:
            raise RuntimeError("profile: nothing was profiled; enter it, or call start(), first")
        return self._profile

    def rows(self) -> list[Any]:
        """A dict for each op and each record_function, the ones that took longest first."""
        blocks = [
            {"op": name, "count": count, "seconds": seconds, "bytes": 0, "allocations": 0,
             "flops": 0, "device_seconds": 0.0}
            for name, (count, seconds) in self._blocks.items()
        ]  # fmt: skip
        return sorted(
            [*self._taken().rows(), *blocks], key=lambda row: row["seconds"], reverse=True
        )

    def key_averages(self, group_by_input_shape: bool = False, **options: Any) -> Averages:
        """rows() by PyTorch's names: a list whose table(sort_by, row_limit) is text.

        group_by_input_shape and options are PyTorch's, not looked at.
        """
        return Averages(
            Average(
                row["op"], row["count"], 1e6 * row["seconds"], 1e6 * row["device_seconds"], row["flops"]
            )
            for row in self.rows()
        )

    def events(self) -> Averages:
        """As key_averages()."""
        return self.key_averages()

    def table(self) -> str:
        """The ops as text."""
        return self._taken().table()

    def trace(self) -> str:
        """Chrome's trace format, as text."""
        return self._taken().trace()

    def export_chrome_trace(self, path: StrPath) -> None:
        """Writes a file for chrome://tracing or ui.perfetto.dev."""
        self._taken().write_trace(os.fspath(path))
