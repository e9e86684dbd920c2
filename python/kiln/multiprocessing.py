"""Python's multiprocessing, with what torch.multiprocessing adds to it.

Tensors go to other processes by value. Processes that are made by fork cannot use a GPU that was
used before; those of spawn can.
"""

from __future__ import annotations

import multiprocessing as _processes
from typing import TYPE_CHECKING

from . import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn",
    "start_processes",
]  # fmt: skip
_STRATEGY = "file_system"


def __getattr__(name: str) -> Any:
    return getattr(_processes, name)  # Process, Queue, get_context, ...


def get_all_sharing_strategies() -> set[str]:
    """The ways to send tensors to another process: by value, under PyTorch's name.

    >>> kiln.multiprocessing.get_all_sharing_strategies()
    {'file_system'}
    """
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """The only one.

    >>> kiln.multiprocessing.get_sharing_strategy()
    'file_system'
    """
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """new_strategy is accepted without effect.

    >>> kiln.multiprocessing.set_sharing_strategy("file_system")
    """


def _called(function, i, args, failures):
    try:
        function(i, *args)
    except BaseException:
        import traceback

        failures.put((i, traceback.format_exc()))
        raise SystemExit(1) from None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """fn(i, *args) in nprocs fresh processes, i from 0 on.

    join: waits for all of them; the first that fails raises RuntimeError here with its traceback, and
    ends the others. Without join: the list of processes. daemon: whether they end with this one.
    start_method: how they start.

    >>> kiln.multiprocessing.spawn(print, nprocs=0)
    """
    from multiprocessing.connection import wait

    context: Any = _processes.get_context(start_method)
    failures = context.SimpleQueue()
    made = [
        context.Process(target=_called, args=(fn, i, args, failures), daemon=daemon)
        for i in range(nprocs)
    ]
    for process in made:
        process.start()
    if not join:
        return made
    waiting = list(made)
    while waiting:
        wait([process.sentinel for process in waiting])
        for process in [p for p in waiting if not p.is_alive()]:
            waiting.remove(process)
            if process.exitcode == 0:
                continue
            for other in waiting:
                other.terminate()
            for other in waiting:
                other.join()
            i = made.index(process)
            text = f"process {i} ended with code {process.exitcode}"
            if not failures.empty():
                i, trace = failures.get()
                text = f"process {i} failed:\n\n{trace}"
            raise errors.RuntimeError(f"multiprocessing.spawn: {text}")
    return None


start_processes = spawn  # its name where start_method is not "spawn"
