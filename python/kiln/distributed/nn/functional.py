"""Operations of groups that have gradients. Every process of the group calls backward(), too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C, errors
from ...autograd import Function
from .. import _collectives as plain
from .._process_group import ProcessGroup, ReduceOp, group_of, op_name, rank_in

if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip


def _check_op(name: str, op: str) -> str:
    if op_name(op) not in ("sum", "avg"):
        raise errors.ValueError(f"distributed.nn.{name}: only SUM and AVG have gradients; got {op}")
    return op


class _Nothing(Function):
    """Zeros in the place of a value that has no part in a result; so has its gradient none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _C.zeros_like(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return _Nothing.apply(grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str, group: ProcessGroup) -> Tensor:
        ctx.op, ctx.group = op, group
        out = x.detach().clone()
        plain.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return _AllReduce.apply(grad, ctx.op, ctx.group), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int, op: str, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.op, ctx.group = root, op, group
        out = x.detach().clone()
        plain.reduce(out, None, op, group, group_dst=root)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        found = _Broadcast.apply(grad, ctx.root, ctx.group)
        if op_name(ctx.op) == "avg":
            found = found / ctx.group.size()
        return found, None, None, None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        out = x.detach().clone()
        plain.broadcast(out, None, group, group_src=root)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        found = _Reduce.apply(grad, ctx.root, ReduceOp.SUM, ctx.group)
        if ctx.group.rank() != ctx.root:
            found = _Nothing.apply(found)
        return found, None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, x: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        outputs = [_C.empty_like(x) for _ in range(group.size())]
        plain.all_gather(outputs, x, group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, *grads)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: str, group: ProcessGroup, *inputs: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        out = _C.empty_like(inputs[group.rank()])
        plain.reduce_scatter(out, list(inputs), op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        grads = _AllGather.apply(ctx.group, grad)
        if op_name(ctx.op) == "avg":
            grads = tuple(g / ctx.group.size() for g in grads)
        return (None, None, *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, shapes: list[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        ctx.shapes = [x.shape for x in inputs]
        outputs = [inputs[0].new_empty(shape) for shape in shapes]
        plain.all_to_all(outputs, list(inputs), group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return (None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads))


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
    return _AllReduce.apply(tensor, _check_op("all_reduce", op), group_of("nn.all_reduce", group))


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
    return _Reduce.apply(tensor, root, _check_op("reduce", op), of)


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
    return _Broadcast.apply(tensor, rank_in("nn.broadcast", of, "src", src, None, None), of)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """The tensor of each process. They have one shape.

    group: whose processes.

    >>> from kiln import distributed
    >>> distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> distributed.nn.all_gather(kiln.ones(2))
    (tensor([1., 1.]),)
    >>> distributed.destroy_process_group()
    """
    return tuple(_AllGather.apply(group_of("nn.all_gather", group), tensor))


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
    found = _AllGather.apply(of, tensor)
    if of.rank() == rank_in("nn.gather", of, "dst", dst, None, None):
        return tuple(found)
    return tuple(_Nothing.apply(x) for x in found)


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
    own = of.rank() == root
    return _ReduceScatter.apply(ReduceOp.SUM, of, *(x if own else _Nothing.apply(x) for x in tensors))


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
    return _ReduceScatter.apply(_check_op("reduce_scatter", op), of, *input_list)


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
    return tuple(_AllToAll.apply(group_of("nn.all_to_all", group), shapes, *input_tensor_list))


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
    return _C.cat(list(_AllToAll.apply(of, [x.shape for x in to], *parts)))
