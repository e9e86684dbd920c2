"""Gradients: kiln.autograd.grad, and where ops are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors
from .._C import Gradients, is_grad_enabled
from . import forward_ad, function, functional, graph, profiler
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .gradcheck import gradcheck, gradgradcheck
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from .graph import GradientEdge

__all__ = [
    "Function",
    "Variable",
    "Gradients",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
]


class _IsTensor(type):
    """Of a class whose instances are all tensors."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.Tensor)


class Variable(metaclass=_IsTensor):
    """data itself, as a leaf that requires a gradient if requires_grad asks for that; volatile is
    PyTorch's, not looked at.

    PyTorch's programs of before 2018 have it; tensors are variables since then.

    >>> x = kiln.autograd.Variable(kiln.zeros(2), requires_grad=True)
    >>> x.requires_grad, isinstance(x, kiln.autograd.Variable)
    (True, True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        return data.detach().requires_grad_() if requires_grad and not data.requires_grad else data


def _as_tuple(tensors):
    """A tuple of tensors, of one or several, or of their places in the graph."""
    if isinstance(tensors, (_C.Tensor, graph.GradientEdge)):
        tensors = (tensors,)
    return tuple(graph._tensor_of(x) for x in tensors)


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    only_inputs: bool = True,
    is_grads_batched: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of outputs with respect to each of inputs, as a tuple.

    Touches no .grad. An output that is no scalar needs its grad_outputs. With create_graph the
    result can be differentiated again. An input that no output depends on is an error, or None
    with allow_unused, or zeros with materialize_grads. retain_graph: whether it may be done again. With is_grads_batched the first dim of each of
    grad_outputs counts several of them, and the results have it too. only_inputs is PyTorch's, and
    must be True.

    >>> x = kiln.tensor(3., requires_grad=True)
    >>> kiln.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if not only_inputs:
        raise ValueError("grad: expected only_inputs=True; use backward() to reach all leaves")
    if is_grads_batched:
        return _batched_grad(
            outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads
        )
    of, with_respect_to = _as_tuple(outputs), _as_tuple(inputs)
    given = () if grad_outputs is None else _as_tuple_or_none(grad_outputs)
    unused = materialize_grads if allow_unused is None else allow_unused
    if materialize_grads and not unused:
        raise ValueError("grad: materialize_grads needs allow_unused; got allow_unused=False")
    found = _C.grad(of, with_respect_to, given, retain_graph, create_graph, unused)
    if materialize_grads:
        found = tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, with_respect_to))
    return found


def _batched_grad(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads):
    """grad() for each of the gradients that stand in the first dim, one after another."""
    given = () if grad_outputs is None else _as_tuple_or_none(grad_outputs)
    counts = {g.shape[0] for g in given if g is not None and g.dim() > 0}
    if len(counts) != 1:
        raise ValueError(
            "grad: with is_grads_batched expected grad_outputs whose first dims have one size; got "
            f"{sorted(counts)}"
        )
    rows = []
    for i in range(counts.pop()):
        one = tuple(None if g is None else g[i] for g in given)
        rows.append(
            grad(outputs, inputs, one, True, create_graph, allow_unused, materialize_grads)
        )
    return tuple(
        None if column[0] is None else _C.stack(list(column)) for column in zip(*rows, strict=True)
    )


def _as_tuple_or_none(tensors):
    return (tensors,) if tensors is None or isinstance(tensors, _C.Tensor) else tuple(tensors)


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None:
    """Adds the gradients of the sum of tensors into the .grad of the leaves.

    grad_tensors: what each is multiplied with, None for ones of one element. retain_graph: whether
    it may be done again. create_graph: whether gradients have gradients. inputs: the only leaves
    that get one.

    >>> x = kiln.tensor(3., requires_grad=True)
    >>> kiln.autograd.backward([x * x])
    >>> x.grad
    tensor(6.)
    """
    roots: tuple[Tensor, ...] = _as_tuple(tensors)
    if grad_tensors is None:
        grad_tensors = (None,) * len(roots)
    grad_tensors = _as_tuple_or_none(grad_tensors)
    if len(grad_tensors) != len(roots):
        raise ValueError(
            f"backward: expected one gradient for each tensor; got {len(grad_tensors)} for "
            f"{len(roots)}"
        )
    wanted = None if inputs is None else list(_as_tuple(inputs))
    if len(roots) > 1 and all(x.requires_grad for x in roots):
        roots, grad_tensors = (_joined(roots, grad_tensors),), (None,)
    for tensor, gradient in zip(roots, grad_tensors):
        tensor.backward(gradient, retain_graph, create_graph, wanted)


class _Joined(Function):
    """A number whose gradients with respect to several tensors are those that it is given."""

    @staticmethod
    def forward(ctx: Any, count: int, *both: Any) -> Any:
        ctx.gradients = both[count:]
        return _C.zeros(())

    @staticmethod
    def backward(ctx: Any, *_: Any, **__: Any) -> Any:
        return (None, *ctx.gradients, *(None for _ in ctx.gradients))


def _joined(tensors, grad_tensors):
    """One root in the place of several, so that one pass reaches each tensor once."""
    gradients = []
    for x, g in zip(tensors, grad_tensors):
        if g is None and x.numel() != 1:
            raise errors.RuntimeError(
                "grad can be implicitly created only for scalar outputs; got a tensor of shape "
                f"{list(x.shape)}"
            )
        gradients.append(_C.ones_like(x.detach()) if g is None else g)
        if gradients[-1].shape != x.shape:
            raise errors.RuntimeError(
                f"backward: expected a gradient of shape {list(x.shape)}; got "
                f"{list(gradients[-1].shape)}"
            )
    with enable_grad():
        return _Joined.apply(len(gradients), *tensors, *gradients)
