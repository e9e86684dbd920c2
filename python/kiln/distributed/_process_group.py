"""Groups of processes: how they are made, and what programs ask about them."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

from .. import _C, errors
from ..futures import Future
from ._rendezvous import rendezvous
from ._store import PrefixStore, Store, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor

default_pg_timeout = timedelta(minutes=30)


class ReduceOp(str):
    """How values of several processes are joined. AVG is of floating point numbers; BAND, BOR and BXOR
    are of integers and bools.

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


def op_name(op: Any) -> str:
    """The name of a ReduceOp in C++."""
    name = str(op).rsplit(".", 1)[-1].upper()
    if name not in vars(ReduceOp):
        raise errors.ValueError(f"distributed: expected a ReduceOp; got {op!r}")
    return name.lower()


class Backend(str):
    """The name of a way to communicate. Kiln has one, which takes each of these names.

    >>> kiln.distributed.Backend.GLOO
    'gloo'
    """

    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"


class Work:
    """An operation with async_op=True, or an isend() or irecv(). Its tensors are the operation's until
    wait() returns.

    work: the operation; None: one that has ended. then: called when wait() returns for the first time.
    tensors: what get_future() gives.

    >>> kiln.distributed.Work().wait()
    True
    """

    def __init__(
        self, work: Any = None, then: Callable[[], Any] | None = None, tensors: Sequence[Tensor] = ()
    ) -> None:
        self._work = work
        self._then = then
        self._tensors = tensors

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Returns True when the operation has ended, and raises DistBackendError when it failed.

        timeout: raises DistBackendError when it is over first; the operation goes on then.
        """
        if self._work is not None:
            self._work.wait(None if timeout is None else seconds_of(timeout))
        then, self._then = self._then, None
        if then is not None:
            then()
        return True

    def get_future(self) -> Future[list[Tensor]]:
        """A Future whose result is the list of the operation's results."""

        def wait() -> list[Tensor]:
            self.wait()
            return list(self._tensors)

        return Future._of(wait)

    def is_completed(self) -> bool:
        """Whether the operation has ended, well or not."""
        return self._work is None or self._work.is_completed()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._work is None or self._work.is_success()

    def source_rank(self) -> int:
        """Of a receive that has ended: the rank, in its group, of the process that sent."""
        return -1 if self._work is None else int(self._work.source_rank())


class ProcessGroup:
    """Processes that work together, which init_process_group() and new_group() make.

    store: by which they find one another. rank, size: of this process among them. backend: the name
    that get_backend() gives. timeout: how long an operation waits. ranks: of its processes among all;
    without it their numbers here. group_name: groups over one store have different ones.

    >>> group = kiln.distributed.ProcessGroup(kiln.distributed.HashStore(), 0, 1)
    >>> group.size()
    1
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        backend: str = "gloo",
        timeout: timedelta | float = default_pg_timeout,
        ranks: Sequence[int] | None = None,
        group_name: str = "default",
    ) -> None:
        self._backend = backend
        self.store = store
        self.group_name = group_name
        self._ranks = list(range(size)) if ranks is None else list(ranks)
        self._group = _C._distributed.process_group(
            store._store, rank, size, group_name, seconds_of(timeout), None
        )

    def rank(self) -> int:
        """Of this process in the group."""
        return int(self._group.rank())

    def size(self) -> int:
        """How many processes there are."""
        return int(self._group.size())

    def name(self) -> str:
        """The backend's name."""
        return self._backend

    def abort(self) -> None:
        """Breaks the group: whoever waits in any of its processes gets an error."""
        self._group.abort()

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self

    def __reduce__(self) -> Any:
        if self is not group.WORLD:
            raise errors.TypeError(
                "ProcessGroup: only the group of all processes can be pickled, as the one of the "
                "program that loads it"
            )
        return _world, ()

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r}: rank {self.rank()} of {self.size()}>"


class GroupMember:
    """WORLD: the group of all processes. NON_GROUP_MEMBER: what new_group() gives to processes that are
    not in it; operations do nothing with it.

    >>> kiln.distributed.GroupMember.WORLD
    """

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: Any = -100


class group:  # noqa: N801  PyTorch's name
    """WORLD: the group of all processes, None before init_process_group().

    >>> kiln.distributed.group.WORLD
    """

    WORLD: ProcessGroup | None = None


# How many groups this process made in a store: all processes make them in the same order.
_made = 0
# The same for those that only their processes make, by their ranks.
_made_locally: dict[tuple[int, ...], int] = {}


def is_available() -> bool:
    """Whether groups can be made: True.

    >>> kiln.distributed.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether init_process_group() has made a group.

    >>> kiln.distributed.is_initialized()
    False
    """
    return group.WORLD is not None


def is_nccl_available() -> bool:
    """False. Tensors of GPUs go through host memory.

    >>> kiln.distributed.is_nccl_available()
    False
    """
    return False


def is_gloo_available() -> bool:
    """True: the backend of this name connects processes by TCP.

    >>> kiln.distributed.is_gloo_available()
    True
    """
    return True


def is_mpi_available() -> bool:
    """False. Programs that mpirun starts are groups by TCP.

    >>> kiln.distributed.is_mpi_available()
    False
    """
    return False


def is_ucc_available() -> bool:
    """False.

    >>> kiln.distributed.is_ucc_available()
    False
    """
    return False


def is_xccl_available() -> bool:
    """False.

    >>> kiln.distributed.is_xccl_available()
    False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Whether init_process_group() connects processes by a backend of this name: by "gloo".

    backend: the name.

    >>> kiln.distributed.is_backend_available("gloo")
    True
    """
    return backend.lower() == Backend.GLOO


def is_torchelastic_launched() -> bool:
    """Whether kiln.distributed.run or torchrun started this process.

    >>> kiln.distributed.is_torchelastic_launched()
    False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def _world() -> ProcessGroup:
    return group_of("ProcessGroup")


def _set_world(made: ProcessGroup | None) -> None:
    group.WORLD = GroupMember.WORLD = made


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the group of all processes. Each of them calls it, and returns when all have.

    backend: its name is kept for get_backend(); all of them are TCP. init_method: "env://", which is
    the default, takes MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE from the environment, as torchrun
    and `python -m kiln.distributed.run` set them; "tcp://host:port" and "file:///path" need rank and
    world_size. store: instead of init_method. timeout: how long operations wait for other processes; a
    timedelta, or seconds; 30 minutes. group_name, pg_options, device_id: accepted without effect.

    The variable KILN_HOST is the name or number by which others reach this machine, where the way to
    the server's machine does not tell.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.get_world_size()
    1
    >>> kiln.distributed.destroy_process_group()
    >>> kiln.distributed.init_process_group(init_method="http://a", world_size=2, rank=0)
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: init_process_group: expected env://, tcp://host:port or file:///path; got 'http://a'
    """
    global _made
    if group.WORLD is not None:
        raise errors.ValueError("init_process_group: there is a process group already")
    if store is not None and init_method is not None:
        raise errors.ValueError("init_process_group: expected either store= or init_method=")
    limit = default_pg_timeout if timeout is None else timeout
    if store is None:
        store, rank, world_size = rendezvous(init_method, rank, world_size, limit)
    elif rank < 0 or world_size < 1:
        raise errors.ValueError("init_process_group: store= needs rank= and world_size=")
    _made += 1
    name = "gloo" if backend is None else str(backend).lower()
    _set_world(ProcessGroup(store, rank, world_size, name, limit, group_name=f"world{_made}"))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group: that of all processes, or another one. Others that still wait for this process get
    an error, so call barrier() before where they may.

    >>> kiln.distributed.destroy_process_group()
    """
    world = globals()["group"].WORLD
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if group is None or group is world:
        _set_world(None)
        group = world
    if group is not None:
        group.abort()


def group_of(name: str, given: ProcessGroup | None = None) -> ProcessGroup:
    """The group that an operation is for."""
    found = group.WORLD if given is None else given
    if group.WORLD is None or found is None:
        raise errors.ValueError(
            f"distributed.{name}: there is no process group; call init_process_group() first, or "
            "guard the call by distributed.is_initialized()"
        )
    return found


def is_outside(given: Any) -> bool:
    """Whether this process is not in a group that new_group() made."""
    return given is GroupMember.NON_GROUP_MEMBER


def rank_in(
    name: str, of: ProcessGroup, word: str, rank: int | None, group_rank: int | None, default: int | None
) -> int:
    """The number in a group of a process that is given as one of all, or as one of the group."""
    if rank is not None and group_rank is not None:
        raise errors.ValueError(f"distributed.{name}: expected {word}= or group_{word}=, not both")
    if group_rank is not None:
        if not 0 <= group_rank < of.size():
            raise errors.ValueError(
                f"distributed.{name}: group_{word} must be in [0, {of.size()}); got {group_rank}"
            )
        return group_rank
    if rank is None:
        if default is None:
            raise errors.ValueError(f"distributed.{name}: expected {word}= or group_{word}=")
        return default
    if rank not in of._ranks:
        raise errors.ValueError(
            f"distributed.{name}: the process {rank} is not in the group of {of._ranks}"
        )
    return of._ranks.index(rank)


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process, from 0 on; -1 where it is not in the group. ValueError without a
    group, as in PyTorch. group: without it that of all processes.

    >>> kiln.distributed.get_rank()
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.get_rank: there is no process group; call init_process_group() first, or guard the call by distributed.is_initialized()
    """
    return -1 if is_outside(group) else group_of("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes there are; -1 where this one is not in the group. ValueError without a group,
    as in PyTorch. group: without it that of all processes.

    >>> kiln.distributed.get_world_size()
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.get_world_size: there is no process group; call init_process_group() first, or guard the call by distributed.is_initialized()
    """
    return -1 if is_outside(group) else group_of("get_world_size", group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name that init_process_group() was given. group: without it that of all processes.

    >>> kiln.distributed.init_process_group("nccl", world_size=1, rank=0)
    >>> kiln.distributed.get_backend()
    'nccl'
    >>> kiln.distributed.destroy_process_group()
    """
    return group_of("get_backend", group).name()


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The numbers of a group's processes among all. group: without it that of all processes.

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.get_process_group_ranks()
    [0]
    >>> kiln.distributed.destroy_process_group()
    """
    return list(group_of("get_process_group_ranks", group)._ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number among all processes of the one that has group_rank in group.

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.get_global_rank(kiln.distributed.group.WORLD, 0)
    0
    >>> kiln.distributed.destroy_process_group()
    """
    of = group_of("get_global_rank", group)
    return of._ranks[rank_in("get_global_rank", of, "rank", None, group_rank, None)]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in group of the process that has global_rank among all.

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.get_group_rank(kiln.distributed.group.WORLD, 0)
    0
    >>> kiln.distributed.destroy_process_group()
    """
    return rank_in("get_group_rank", group_of("get_group_rank", group), "rank", global_rank, None, None)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among those of its machine: the variable LOCAL_RANK.

    fallback_rank: without the variable. RuntimeError without both.

    >>> kiln.distributed.get_node_local_rank(fallback_rank=0)
    0
    """
    text = os.environ.get("LOCAL_RANK")
    if text is not None:
        return int(text)
    if fallback_rank is None:
        raise errors.RuntimeError(
            "get_node_local_rank: the variable LOCAL_RANK is not set; expected it or fallback_rank="
        )
    return fallback_rank


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | float | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> ProcessGroup:
    """A group of some of the processes. All processes call it, those outside of it, too; they get
    GroupMember.NON_GROUP_MEMBER.

    ranks: their numbers, without it all. timeout: as of init_process_group(), whose it is without one.
    backend: its name, without it that of the group of all. use_local_synchronization: whether only its
    processes call it. pg_options, group_desc, device_id: accepted without effect.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.new_group([0]).size()
    1
    >>> kiln.distributed.destroy_process_group()
    """
    global _made
    world = group_of("new_group")
    chosen = list(range(world.size())) if ranks is None else sorted(int(rank) for rank in ranks)
    if not chosen or len(set(chosen)) != len(chosen) or not set(chosen) <= set(range(world.size())):
        raise errors.ValueError(
            f"distributed.new_group: the ranks must be different and in [0, {world.size()}); got "
            f"{ranks}"
        )
    if use_local_synchronization:
        count = _made_locally[tuple(chosen)] = _made_locally.get(tuple(chosen), 0) + 1
        name = f"local{count}-" + "-".join(map(str, chosen))
    else:
        _made += 1
        name = f"group{_made}"
    if world.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    limit = timedelta(seconds=world._group.timeout) if timeout is None else timeout
    store = PrefixStore(name, world.store)
    rank = chosen.index(world.rank())
    kind = world.name() if backend is None else str(backend).lower()
    return ProcessGroup(store, rank, len(chosen), kind, limit, chosen, name)
