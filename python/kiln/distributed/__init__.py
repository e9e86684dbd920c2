"""torch.distributed for one process: a group whose only member is this process.

Programs ask whether there is a group before they use it. With init_process_group(world_size=1, rank=0),
or RANK=0 and WORLD_SIZE=1 in the environment, there is one, and the collective operations are those of
a group of one: a sum over the processes is the tensor itself.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import errors

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

__all__ = [
    "Backend", "DeviceMesh", "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_rank",
    "get_world_size", "group", "init_device_mesh", "init_process_group", "is_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "new_group", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
]  # fmt: skip


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


def _group(name: str, given: ProcessGroup | None = None) -> ProcessGroup:
    """The group that an operation is for."""
    found = group.WORLD if given is None else given
    if group.WORLD is None or found is None:
        raise errors.ValueError(
            f"distributed.{name}: there is no process group; call init_process_group() first, or "
            "guard the call by distributed.is_initialized()"
        )
    return found


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _only(name: str, tensors: list[Any] | None) -> Any:
    """The entry of a list that has one for each process."""
    if tensors is None or len(tensors) != 1:
        raise errors.ValueError(
            f"distributed.{name}: expected a list of 1 entry, one for each process; got "
            f"{'none' if tensors is None else len(tensors)}"
        )
    return tensors[0]


def _write(output: Tensor, input: Tensor) -> None:
    from ..autograd import no_grad

    with no_grad():
        output.copy_(input.reshape(output.shape))


def get_rank(group: ProcessGroup | None = None) -> int:
    """0. ValueError without a group, as in PyTorch. group: without it that of all processes.

    >>> kiln.distributed.get_rank()
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.get_rank: there is no process group; call init_process_group() first, or guard the call by distributed.is_initialized()
    """
    return _group("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """1. ValueError without a group, as in PyTorch. group: without it that of all processes.

    >>> kiln.distributed.get_world_size()
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.get_world_size: there is no process group; call init_process_group() first, or guard the call by distributed.is_initialized()
    """
    return _group("get_world_size", group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name that init_process_group() was given. group: without it that of all processes.

    >>> kiln.distributed.init_process_group("nccl", world_size=1, rank=0)
    >>> kiln.distributed.get_backend()
    'nccl'
    >>> kiln.distributed.destroy_process_group()
    """
    return _group("get_backend", group).name()


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
    world = _group("new_group")
    if ranks is not None and list(ranks) != [0]:
        raise errors.ValueError(f"distributed.new_group: expected the ranks [0]; got {ranks}")
    return ProcessGroup(world.name() if backend is None else backend)


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Waits for the other processes: there are none. ValueError without a group.

    group: whose processes. async_op: gives a Work, which is done. device_ids: of GPUs.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.barrier()
    >>> kiln.distributed.destroy_process_group()
    """
    _group("barrier", group)
    return _done(async_op)


def all_reduce(
    tensor: Tensor,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Joins the tensors of all processes in tensor, which stays as it is: it is the only one.

    op: how. group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.ones(2)
    >>> kiln.distributed.all_reduce(x)
    >>> x
    tensor([1., 1.])
    >>> kiln.distributed.destroy_process_group()
    """
    _group("all_reduce", group)
    return _done(async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """all_reduce() of tensor for one process, dst or group_dst, which is 0.

    op: how. group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.reduce(kiln.ones(2), dst=0)
    >>> kiln.distributed.destroy_process_group()
    """
    _group("reduce", group)
    return _done(async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """The tensor of the process src or group_src for all: it is here already.

    group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.broadcast(kiln.ones(2), src=0)
    >>> kiln.distributed.destroy_process_group()
    """
    _group("broadcast", group)
    return _done(async_op)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """The object_list of the process src or group_src for all: it is here already.

    group: whose processes. device: where the objects travel.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.broadcast_object_list(["a"], src=0)
    >>> kiln.distributed.destroy_process_group()
    """
    _group("broadcast_object_list", group)


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Writes the tensor of each process to its entry of tensor_list, which has one.

    group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [kiln.zeros(2)]
    >>> kiln.distributed.all_gather(found, kiln.tensor([1., 2.]))
    >>> found
    [tensor([1., 2.])]
    >>> kiln.distributed.destroy_process_group()
    """
    _group("all_gather", group)
    _write(_only("all_gather", tensor_list), tensor)
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Writes the input_tensor of all processes to output_tensor, one behind another.

    group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = kiln.zeros(2)
    >>> kiln.distributed.all_gather_into_tensor(found, kiln.tensor([1., 2.]))
    >>> found
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    _group("all_gather_into_tensor", group)
    _write(output_tensor, input_tensor)
    return _done(async_op)


def all_gather_object(
    object_list: list[Any], obj: Any, group: ProcessGroup | None = None
) -> None:
    """Puts obj of each process into its entry of object_list, which has one.

    group: whose processes.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [None]
    >>> kiln.distributed.all_gather_object(found, "a")
    >>> found
    ['a']
    >>> kiln.distributed.destroy_process_group()
    """
    _group("all_gather_object", group)
    _only("all_gather_object", object_list)
    object_list[0] = obj


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """all_gather() of tensor to gather_list for one process, dst or group_dst, which is 0.

    group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [kiln.zeros(2)]
    >>> kiln.distributed.gather(kiln.tensor([1., 2.]), found, dst=0)
    >>> found
    [tensor([1., 2.])]
    >>> kiln.distributed.destroy_process_group()
    """
    _group("gather", group)
    _write(_only("gather", gather_list), tensor)
    return _done(async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Writes this process's entry of the scatter_list of the process src or group_src to tensor.

    group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.scatter(x, [kiln.tensor([1., 2.])], src=0)
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    _group("scatter", group)
    _write(tensor, _only("scatter", scatter_list))
    return _done(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Joins the input_list of all processes, and writes this process's entry to output.

    op: how. group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.reduce_scatter(x, [kiln.tensor([1., 2.])])
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    _group("reduce_scatter", group)
    _write(output, _only("reduce_scatter", input_list))
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Joins the input of all processes, and writes this process's part to output.

    op: how. group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.reduce_scatter_tensor(x, kiln.tensor([1., 2.]))
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    _group("reduce_scatter_tensor", group)
    _write(output, input)
    return _done(async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Each process sends an entry of input_tensor_list to the output_tensor_list of each: to itself.

    group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [kiln.zeros(2)]
    >>> kiln.distributed.all_to_all(found, [kiln.tensor([1., 2.])])
    >>> found
    [tensor([1., 2.])]
    >>> kiln.distributed.destroy_process_group()
    """
    _group("all_to_all", group)
    _write(_only("all_to_all", output_tensor_list), _only("all_to_all", input_tensor_list))
    return _done(async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Each process sends a part of input to the output of each: all of it, to itself.

    input_split_sizes, output_split_sizes: of the parts. group: whose processes. async_op: gives a Work, which is done.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.all_to_all_single(x, kiln.tensor([1., 2.]))
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    _group("all_to_all_single", group)
    _write(output, input)
    return _done(async_op)


from . import device_mesh as device_mesh, nn as nn  # noqa: E402  they use the names above
from .device_mesh import DeviceMesh as DeviceMesh, init_device_mesh as init_device_mesh  # noqa: E402
