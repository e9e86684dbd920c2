"""What every op costs: `with kiln.profiler.profile() as p: ...`, then p.table()."""

from __future__ import annotations

import contextlib
import enum
import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

    from .._typing import StrPath

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
    "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """Where ops run. A profile has the times of the host and of GPUs, whatever is asked for.

    >>> kiln.profiler.ProfilerActivity.CPU.name
    'CPU'
    """

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3


class ProfilerAction(enum.Enum):
    """What a profile with a schedule does in a step.

    >>> kiln.profiler.ProfilerAction.RECORD.name
    'RECORD'
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps are profiled: a function from a step's number to what is done in it.

    skip_first: steps at the beginning that are left out. Then again and again: wait and warmup steps
    that are left out too, and active ones that are profiled. repeat: how often; 0: without end.

    >>> plan = kiln.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise errors.ValueError(
            "schedule: expected at least one active step and no negative number; got "
            f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, "
            f"skip_first={skip_first}"
        )

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        cycle = wait + warmup + active
        if step < 0 or (repeat and step // cycle >= repeat):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: StrPath, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For on_trace_ready: writes each trace into the folder, for TensorBoard or ui.perfetto.dev.

    dir_name: the folder. worker_name: how files begin, the machine and the process without. use_gzip:
    whether they are compressed.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> handler = kiln.profiler.tensorboard_trace_handler(folder, "run")
    >>> with kiln.profiler.profile(on_trace_ready=handler):
    ...     _ = kiln.ones(2) + 1
    >>> [path.name.partition(".")[0] for path in pathlib.Path(folder).iterdir()]
    ['run']
    """

    def write(done: profile) -> None:
        import socket

        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = os.path.join(os.fspath(dir_name), f"{worker}.{time.time_ns()}.pt.trace.json")
        if not use_gzip:
            done.export_chrome_trace(path)
            return
        import gzip

        with gzip.open(path + ".gz", "wt") as out:
            out.write(done.trace())

    return write


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


class Average(NamedTuple):
    """All calls of one op, by PyTorch's names; times are microseconds."""

    key: str
    count: int  # type: ignore[assignment]
    cpu_time_total: float
    device_time_total: float

    @property
    def cpu_time(self) -> float:
        """Of one call."""
        return self.cpu_time_total / max(self.count, 1)

    @property
    def self_cpu_time_total(self) -> float:
        """The same as cpu_time_total: ops are listed, not what calls them."""
        return self.cpu_time_total


class Averages(list[Average]):
    """What profile.key_averages() gives: a list that prints as a table."""

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, **options: Any
    ) -> str:
        """The ops as text. sort_by: an attribute, such as "cpu_time_total" or "count"; row_limit: how
        many; options are PyTorch's, not looked at."""
        rows: Iterable[Average] = self
        if sort_by is not None:
            if not self or not hasattr(self[0], sort_by):
                known = "key, count, cpu_time_total, self_cpu_time_total, cpu_time, device_time_total"
                if self:
                    raise errors.ValueError(f"table: unknown sort_by {sort_by!r}; expected one of {known}")
            rows = sorted(self, key=lambda row: getattr(row, sort_by), reverse=sort_by != "key")
        width = max([len(row.key) for row in self] + [4])
        lines = [f"{'name':{width}}  {'calls':>8}  {'total us':>12}  {'us a call':>10}  {'device us':>10}"]
        for row in list(rows)[: row_limit if row_limit >= 0 else None]:
            lines.append(
                f"{row.key:{width}}  {row.count:8}  {row.cpu_time_total:12.1f}  {row.cpu_time:10.2f}  "
                f"{row.device_time_total:10.1f}"
            )
        return "\n".join(lines)


class profile:
    """Counts ops on all threads within a with block: calls, time, bytes, allocations.

    table() is the text to print, rows() the same as dicts (op, count, seconds, bytes,
    allocations, device_seconds; the ops that took longest first), export_chrome_trace(path) a
    file for chrome://tracing or ui.perfetto.dev. device_seconds are a GPU's own, for its kernels
    and copies. A profile may be read while it runs, and again later.

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
             "device_seconds": 0.0}
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
            Average(row["op"], row["count"], 1e6 * row["seconds"], 1e6 * row["device_seconds"])
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
