"""The group of one process, and what programs ask about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import errors

if TYPE_CHECKING:
    from typing import Any


class ReduceOp(str):
    """How values of several processes are joined; of one value each gives the value.

    >>> kiln.distributed.ReduceOp.SUM
    'SUM'
    """

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PRODUCT"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"


class Backend(str):
    """The name of a way to communicate.

    >>> kiln.distributed.Backend.GLOO
    'gloo'
    """

    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"


class ProcessGroup:
    """The group of this process alone, which init_process_group() and new_group() make.

    backend: its name.

    >>> kiln.distributed.ProcessGroup("gloo").size()
    1
    """

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def rank(self) -> int:
        """0."""
        return 0

    def size(self) -> int:
        """1."""
        return 1

    def name(self) -> str:
        """The backend's name."""
        return self._backend


class Work:
    """What an operation with async_op=True gives. It is done.

    >>> kiln.distributed.Work().wait()
    True
    """

    def wait(self, timeout: Any = None) -> bool:
        """True."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True


class group:  # noqa: N801  PyTorch's name
    """WORLD: the group of all processes, None before init_process_group().

    >>> kiln.distributed.group.WORLD
    """

    WORLD: ProcessGroup | None = None


def is_available() -> bool:
    """Whether init_process_group() has made a group: programs that ask run in one process without it.

    >>> kiln.distributed.is_available()
    False
    """
    return group.WORLD is not None


def is_initialized() -> bool:
    """Whether init_process_group() has made a group.

    >>> kiln.distributed.is_initialized()
    False
    """
    return group.WORLD is not None


def is_nccl_available() -> bool:
    """False.

    >>> kiln.distributed.is_nccl_available()
    False
    """
    return False


def is_gloo_available() -> bool:
    """False.

    >>> kiln.distributed.is_gloo_available()
    False
    """
    return False


def is_mpi_available() -> bool:
    """False.

    >>> kiln.distributed.is_mpi_available()
    False
    """
    return False


def is_torchelastic_launched() -> bool:
    """False.

    >>> kiln.distributed.is_torchelastic_launched()
    False
    """
    return False


def _from_environment(name: str) -> int:
    if name not in os.environ:
        raise errors.ValueError(
            f"init_process_group: expected {name.lower()}= or the environment variable {name}"
        )
    return int(os.environ[name])


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the group of one process. RuntimeError for more: Kiln computes in one process.

    backend: its name is kept for get_backend(). world_size, rank: 1 and 0; without them those of the
    environment variables WORLD_SIZE and RANK. init_method, timeout, store, group_name, pg_options,
    device_id: how processes find each other, which one does not need to.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.get_world_size()
    1
    >>> kiln.distributed.destroy_process_group()
    >>> kiln.distributed.init_process_group("gloo", world_size=2, rank=0)
    Traceback (most recent call last):
        ...
    kiln.errors.RuntimeError: init_process_group: Kiln computes in one process; got world_size=2 and rank=0
    """
    if group.WORLD is not None:
        raise errors.ValueError("init_process_group: there is a process group already")
    world_size = _from_environment("WORLD_SIZE") if world_size == -1 else world_size
    rank = _from_environment("RANK") if rank == -1 else rank
    if world_size != 1 or rank != 0:
        raise errors.RuntimeError(
            f"init_process_group: Kiln computes in one process; got world_size={world_size} and "
            f"rank={rank}"
        )
    group.WORLD = ProcessGroup("gloo" if backend is None else str(backend).lower())


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends the group of all processes; group: or another one, which has nothing to end.

    >>> kiln.distributed.destroy_process_group()
    """
    if group is None or group is globals()["group"].WORLD:
        globals()["group"].WORLD = None


def group_of(name: str, given: ProcessGroup | None = None) -> ProcessGroup:
    """The group that an operation is for."""
    found = group.WORLD if given is None else given
    if group.WORLD is None or found is None:
        raise errors.ValueError(
            f"distributed.{name}: there is no process group; call init_process_group() first, or "
            "guard the call by distributed.is_initialized()"
        )
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """0. ValueError without a group, as in PyTorch. group: without it that of all processes.

    >>> kiln.distributed.get_rank()
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.get_rank: there is no process group; call init_process_group() first, or guard the call by distributed.is_initialized()
    """
    return group_of("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """1. ValueError without a group, as in PyTorch. group: without it that of all processes.

    >>> kiln.distributed.get_world_size()
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.get_world_size: there is no process group; call init_process_group() first, or guard the call by distributed.is_initialized()
    """
    return group_of("get_world_size", group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name that init_process_group() was given. group: without it that of all processes.

    >>> kiln.distributed.init_process_group("nccl", world_size=1, rank=0)
    >>> kiln.distributed.get_backend()
    'nccl'
    >>> kiln.distributed.destroy_process_group()
    """
    return group_of("get_backend", group).name()


def new_group(
    ranks: list[int] | None = None, timeout: Any = None, backend: str | None = None, **kwargs: Any
) -> ProcessGroup:
    """A group of this process. ranks: [0], or none for all. timeout: nothing waits. backend: its name,
    without it that of the group of all.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.new_group([0]).size()
    1
    >>> kiln.distributed.destroy_process_group()
    """
    world = group_of("new_group")
    if ranks is not None and list(ranks) != [0]:
        raise errors.ValueError(f"distributed.new_group: expected the ranks [0]; got {ranks}")
    return ProcessGroup(world.name() if backend is None else backend)
