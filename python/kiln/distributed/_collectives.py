"""The operations of all processes of a group, in a group of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from ._process_group import ProcessGroup, ReduceOp, Work, group_of

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


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


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Waits for the other processes: there are none. ValueError without a group.

    group: whose processes. async_op: gives a Work, which is done. device_ids: of GPUs.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.barrier()
    >>> kiln.distributed.destroy_process_group()
    """
    group_of("barrier", group)
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
    group_of("all_reduce", group)
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
    group_of("reduce", group)
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
    group_of("broadcast", group)
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
    group_of("broadcast_object_list", group)


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
    group_of("all_gather", group)
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
    group_of("all_gather_into_tensor", group)
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
    group_of("all_gather_object", group)
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
    group_of("gather", group)
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
    group_of("scatter", group)
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
    group_of("reduce_scatter", group)
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
    group_of("reduce_scatter_tensor", group)
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
    group_of("all_to_all", group)
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
    group_of("all_to_all_single", group)
    _write(output, input)
    return _done(async_op)
