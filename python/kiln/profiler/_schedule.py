"""Which steps of a program are profiled, and what becomes of their traces."""

from __future__ import annotations

import enum
import os
import time
from typing import TYPE_CHECKING

from .. import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._typing import StrPath
    from . import profile


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
