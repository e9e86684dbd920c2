"""Parameters as one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C, errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..._C import Tensor


def _same_device(op, x, device):
    if device is not None and x.device != device:
        raise errors.TypeError(
            f"{op}: Found two parameters on different devices; got {device} and {x.device}"
        )
    return x.device


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after another. Gradients flow through it.

    >>> nn.utils.parameters_to_vector([kiln.zeros(2), kiln.ones(1)])
    tensor([0., 0., 1.])
    """
    parts, device = [], None
    for x in parameters:
        device = _same_device("parameters_to_vector", x, device)
        parts.append(x.reshape(-1))
    return _C.cat(parts)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives parameters the elements of a vector, in their order. They share its memory then.

    >>> x, y = nn.Parameter(kiln.zeros(2)), nn.Parameter(kiln.zeros(1))
    >>> nn.utils.vector_to_parameters(kiln.tensor([1., 2., 3.]), [x, y])
    >>> x.tolist(), y.tolist()
    ([1.0, 2.0], [3.0])
    """
    if not isinstance(vec, _C.Tensor):
        raise errors.TypeError(
            f"vector_to_parameters: expected a tensor, but got: {type(vec).__name__}"
        )
    at, device = 0, None
    for x in parameters:
        device = _same_device("vector_to_parameters", x, device)
        x.data = vec[at : at + x.numel()].view_as(x).data
        at += x.numel()
