"""Operations of groups that have gradients. Every process of the group calls backward(), too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C
from .. import _collectives as plain
from .._process_group import ProcessGroup, ReduceOp, group_of, op_name, rank_in

if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor

_ops = _C._distributed  # of C++, with gradients of any order

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """The tensors of all processes, joined, as a new tensor.

    op: ReduceOp.SUM or AVG. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.tensor([2.], requires_grad=True)
    >>> distributed.nn.all_reduce(x * x).backward()
    >>> x.grad
    tensor([4.])
    >>> distributed.destroy_process_group()
    """
    return _ops.all_reduce(tensor, group_of("nn.all_reduce", group)._group, op_name(op))


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """all_reduce() of tensor for one process, as a new tensor; others get a copy of theirs, which has
    no part in the gradient.

    dst: which one, of all. op: ReduceOp.SUM or AVG. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.reduce(kiln.ones(2), 0)
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    of = group_of("nn.reduce", group)
    root = rank_in("nn.reduce", of, "dst", dst, None, None)
    return _ops.reduce(tensor, root, of._group, op_name(op))


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """The tensor of one process for all, as a new tensor. Its gradient is the sum over all.

    src: which one, of all. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.broadcast(kiln.ones(2), 0)
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    of = group_of("nn.broadcast", group)
    root = rank_in("nn.broadcast", of, "src", src, None, None)
    return _ops.broadcast(tensor, root, of._group)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """The tensor of each process. They have one shape.

    group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.all_gather(kiln.ones(2))
    (tensor([1., 1.]),)
    >>> distributed.destroy_process_group()
    """
    return _ops.all_gather(tensor, group_of("nn.all_gather", group)._group)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """all_gather() of tensor for one process; the others get zeros, which have no part in the gradient.

    dst: which one, of all. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.gather(kiln.ones(2))
    (tensor([1., 1.]),)
    >>> distributed.destroy_process_group()
    """
    of = group_of("nn.gather", group)
    return _ops.gather(tensor, rank_in("nn.gather", of, "dst", dst, None, None), of._group)


def scatter(tensors: list[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """This process's entry of the tensors of one process. All of them give as many of one shape; those
    of the others have no part in it.

    src: which one, of all. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.scatter([kiln.ones(2)])
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    of = group_of("nn.scatter", group)
    root = rank_in("nn.scatter", of, "src", src, None, None)
    return _ops.scatter(tensors, root, of._group)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: str = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Joins the input_list of all processes: this process's entry.

    output: not used; PyTorch has it. op: ReduceOp.SUM or AVG. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.reduce_scatter(kiln.zeros(2), [kiln.ones(2)])
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    of = group_of("nn.reduce_scatter", group)
    return _ops.reduce_scatter(input_list, of._group, op_name(op))


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: ProcessGroup | None = None
) -> tuple[Tensor, ...]:
    """Each process sends an entry of input_tensor_list to each: what this one got.

    output_tensor_list: the shapes of what it gets. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.all_to_all([kiln.zeros(2)], [kiln.ones(2)])
    (tensor([1., 1.]),)
    >>> distributed.destroy_process_group()
    """
    shapes = [x.shape for x in output_tensor_list]
    return _ops.all_to_all(input_tensor_list, shapes, group_of("nn.all_to_all", group)._group)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Each process sends a part of input, along its first dim, to each: what this one got.

    output: its shape is the result's. output_split_sizes, input_split_sizes: of the parts; without
    them they are equally large. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.all_to_all_single(kiln.zeros(2), kiln.ones(2))
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    of = group_of("nn.all_to_all_single", group)
    to = plain._parts("nn.all_to_all_single", output, output_split_sizes, of.size())
    sizes = input_split_sizes or [input.shape[0] // of.size()] * of.size()
    plain._parts("nn.all_to_all_single", input, input_split_sizes, of.size())
    parts = input.split(list(sizes))
    return _C.cat(_ops.all_to_all(parts, [x.shape for x in to], of._group))
