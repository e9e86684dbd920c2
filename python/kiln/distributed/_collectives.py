"""The operations of all processes of a group on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from ._process_group import ProcessGroup, ReduceOp, Work, group_of, is_outside, op_name, rank_in
from ._store import seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from typing import Any

    from .._C import Tensor


def _work(work: Any, async_op: bool, *results: Tensor) -> Work | None:
    return Work(work, tensors=results) if async_op else None


def _parts(name: str, x: Tensor, sizes: Sequence[int] | None, count: int) -> list[Tensor]:
    """The parts of x along its first dim that go to each process, or come from it."""
    if sizes is None:
        if x.dim() == 0 or x.shape[0] % count != 0:
            raise errors.ValueError(
                f"distributed.{name}: the first dim must be a multiple of {count}, the number of "
                f"processes; got a tensor of shape {list(x.shape)}"
            )
        sizes = [x.shape[0] // count] * count
    if len(sizes) != count or sum(sizes) != x.shape[0]:
        raise errors.ValueError(
            f"distributed.{name}: expected {count} sizes with the sum {x.shape[0]}; got {list(sizes)}"
        )
    return list(x.detach().split(list(sizes)))


def _rows(name: str, x: Tensor, row: Tensor, count: int) -> list[Tensor]:
    """The parts of x, one behind another or stacked, that are as large as row."""
    if x.numel() != row.numel() * count:
        raise errors.ValueError(
            f"distributed.{name}: expected {row.numel() * count} elements for {count} processes; got "
            f"a tensor of shape {list(x.shape)}"
        )
    if not x.is_contiguous():
        raise errors.ValueError(f"distributed.{name}: expected a contiguous tensor for all processes")
    return list(x.detach().view(count, row.numel()).unbind(0))


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Waits until all processes have come here. ValueError without a group.

    group: whose processes. async_op: gives a Work instead. device_ids: accepted without effect.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.barrier()
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    return _work(group_of("barrier", group)._group.barrier(None, async_op), async_op)


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | float | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """barrier(), whose error names the processes that did not come within timeout.

    group: whose processes. timeout: a timedelta, or seconds; without it the group's. wait_all_ranks:
    all that are late are named in any case.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.monitored_barrier(timeout=5)
    >>> kiln.distributed.destroy_process_group()
    """
    if not is_outside(group):
        seconds = None if timeout is None else seconds_of(timeout)
        group_of("monitored_barrier", group)._group.barrier(seconds, False)


def all_reduce(
    tensor: Tensor,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Joins the tensors of all processes in tensor, which has the same bits everywhere afterwards.

    op: how, a ReduceOp. group: whose processes. async_op: gives a Work, and goes on meanwhile.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.ones(2)
    >>> kiln.distributed.all_reduce(x)
    >>> x
    tensor([1., 1.])
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("all_reduce", group)
    return _work(of._group.all_reduce(tensor, op_name(op), async_op), async_op, tensor)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """all_reduce() of tensor for one process; the others keep theirs.

    dst: which one, of all. op: how, a ReduceOp. group: whose processes. async_op: gives a Work, and
    goes on meanwhile. group_dst: instead of dst, its number in the group.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.reduce(kiln.ones(2), dst=0)
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("reduce", group)
    root = rank_in("reduce", of, "dst", dst, group_dst, None)
    return _work(of._group.reduce(tensor, root, op_name(op), async_op), async_op, tensor)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Gives all processes the tensor of one.

    src: which one, of all. group: whose processes. async_op: gives a Work, and goes on meanwhile.
    group_src: instead of src, its number in the group.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.broadcast(kiln.ones(2), src=0)
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("broadcast", group)
    root = rank_in("broadcast", of, "src", src, group_src, None)
    return _work(of._group.broadcast(tensor, root, async_op), async_op, tensor)


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Writes the tensor of each process to its entry of tensor_list, which has as many elements.

    group: whose processes. async_op: gives a Work, and goes on meanwhile.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [kiln.zeros(2)]
    >>> kiln.distributed.all_gather(found, kiln.tensor([1., 2.]))
    >>> found
    [tensor([1., 2.])]
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("all_gather", group)
    return _work(of._group.all_gather(tensor_list, tensor, async_op), async_op, *tensor_list)


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Writes the input_tensor of all processes to output_tensor, one behind another or stacked.

    group: whose processes. async_op: gives a Work, and goes on meanwhile.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = kiln.zeros(2)
    >>> kiln.distributed.all_gather_into_tensor(found, kiln.tensor([1., 2.]))
    >>> found
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("all_gather_into_tensor", group)
    rows = _rows("all_gather_into_tensor", output_tensor, input_tensor, of.size())
    return _work(of._group.all_gather(rows, input_tensor, async_op), async_op)


all_gather_single = all_gather_into_tensor  # its newer name


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """all_gather() of tensor to gather_list for one process; the others give no gather_list.

    dst: which one, of all; 0. group: whose processes. async_op: gives a Work, and goes on meanwhile.
    group_dst: instead of dst, its number in the group.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [kiln.zeros(2)]
    >>> kiln.distributed.gather(kiln.tensor([1., 2.]), found, dst=0)
    >>> found
    [tensor([1., 2.])]
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("gather", group)
    root = rank_in("gather", of, "dst", dst, group_dst, 0)
    return _work(of._group.gather(gather_list or [], tensor, root, async_op), async_op, *(gather_list or []))


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Writes this process's entry of the scatter_list of one process to tensor; the others give none.

    src: which one, of all; 0. group: whose processes. async_op: gives a Work, and goes on meanwhile.
    group_src: instead of src, its number in the group.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.scatter(x, [kiln.tensor([1., 2.])], src=0)
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("scatter", group)
    root = rank_in("scatter", of, "src", src, group_src, 0)
    return _work(of._group.scatter(tensor, scatter_list or [], root, async_op), async_op, tensor)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Joins the input_list of all processes, and writes this process's entry to output.

    op: how, a ReduceOp. group: whose processes. async_op: gives a Work, and goes on meanwhile.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.reduce_scatter(x, [kiln.tensor([1., 2.])])
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("reduce_scatter", group)
    return _work(of._group.reduce_scatter(output, input_list, op_name(op), async_op), async_op, output)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Joins the input of all processes, and writes this process's part to output.

    op: how, a ReduceOp. group: whose processes. async_op: gives a Work, and goes on meanwhile.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.reduce_scatter_tensor(x, kiln.tensor([1., 2.]))
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("reduce_scatter_tensor", group)
    rows = _rows("reduce_scatter_tensor", input.contiguous(), output, of.size())
    return _work(of._group.reduce_scatter(output, rows, op_name(op), async_op), async_op, output)


reduce_scatter_single = reduce_scatter_tensor  # its newer name


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Each process sends an entry of input_tensor_list to the output_tensor_list of each.

    group: whose processes. async_op: gives a Work, and goes on meanwhile.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [kiln.zeros(2)]
    >>> kiln.distributed.all_to_all(found, [kiln.tensor([1., 2.])])
    >>> found
    [tensor([1., 2.])]
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("all_to_all", group)
    return _work(of._group.all_to_all(output_tensor_list, input_tensor_list, async_op), async_op, *output_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Each process sends a part of input, along its first dim, to the output of each.

    input_split_sizes, output_split_sizes: of the parts; without them they are equally large. group:
    whose processes. async_op: gives a Work, and goes on meanwhile.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.zeros(2)
    >>> kiln.distributed.all_to_all_single(x, kiln.tensor([1., 2.]))
    >>> x
    tensor([1., 2.])
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("all_to_all_single", group)
    to = _parts("all_to_all_single", output, output_split_sizes, of.size())
    parts = _parts("all_to_all_single", input, input_split_sizes, of.size())
    return _work(of._group.all_to_all(to, parts, async_op), async_op)
