"""Gradients: kiln.autograd.grad, and where ops are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C
from .._C import Gradients, is_grad_enabled
from . import function, functional, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .gradcheck import gradcheck, gradgradcheck
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor

__all__ = [
    "Function",
    "Gradients",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def _as_tuple(tensors):
    return (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of outputs with respect to each of inputs, as a tuple.

    Touches no .grad. An output that is no scalar needs its grad_outputs. With create_graph the
    result can be differentiated again. An input that no output depends on is an error, or None
    with allow_unused, or zeros with materialize_grads.

    >>> x = kiln.tensor(3., requires_grad=True)
    >>> kiln.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    of, with_respect_to = _as_tuple(outputs), _as_tuple(inputs)
    given = () if grad_outputs is None else _as_tuple_or_none(grad_outputs)
    unused = materialize_grads if allow_unused is None else allow_unused
    if materialize_grads and not unused:
        raise ValueError("grad: materialize_grads needs allow_unused; got allow_unused=False")
    found = _C.grad(of, with_respect_to, given, retain_graph, create_graph, unused)
    if materialize_grads:
        found = tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, with_respect_to))
    return found


def _as_tuple_or_none(tensors):
    return (tensors,) if tensors is None or isinstance(tensors, _C.Tensor) else tuple(tensors)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
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
    tensors = _as_tuple(tensors)
    if grad_tensors is None:
        grad_tensors = (None,) * len(tensors)
    grad_tensors = _as_tuple_or_none(grad_tensors)
    if len(grad_tensors) != len(tensors):
        raise ValueError(
            f"backward: expected one gradient for each tensor; got {len(grad_tensors)} for "
            f"{len(tensors)}"
        )
    wanted = None if inputs is None else list(_as_tuple(inputs))
    keep = create_graph if retain_graph is None else retain_graph
    for i, (tensor, gradient) in enumerate(zip(tensors, grad_tensors)):
        # The passes share a graph: all but the last leave it standing.
        tensor.backward(gradient, keep or i + 1 < len(tensors), create_graph, wanted)
