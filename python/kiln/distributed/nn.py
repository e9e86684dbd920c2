"""Collective operations that have gradients, as torch.distributed.nn has them, in a group of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._process_group import ProcessGroup, ReduceOp, group_of

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce"]


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """The tensors of all processes, joined: a copy of tensor, which is the only one.

    op: how. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> x = kiln.tensor([2.], requires_grad=True)
    >>> distributed.nn.all_reduce(x * x).backward()
    >>> x.grad
    tensor([4.])
    >>> distributed.destroy_process_group()
    """
    group_of("nn.all_reduce", group)
    return tensor.clone()


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """all_reduce() of tensor for one process, dst, which is 0.

    op: how. group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.reduce(kiln.ones(2), 0)
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    group_of("nn.reduce", group)
    return tensor.clone()


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """A copy of the tensor of the process src, which is 0.

    group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.broadcast(kiln.ones(2), 0)
    tensor([1., 1.])
    >>> distributed.destroy_process_group()
    """
    group_of("nn.broadcast", group)
    return tensor.clone()


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Copies of the tensor of each process: one.

    group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.all_gather(kiln.ones(2))
    (tensor([1., 1.]),)
    >>> distributed.destroy_process_group()
    """
    group_of("nn.all_gather", group)
    return (tensor.clone(),)
