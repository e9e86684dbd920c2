"""Gradient clipping."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from ... import _C, errors
from ..._C import _optim

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..._C import Tensor


def _list(parameters):
    return [parameters] if isinstance(parameters, _C.Tensor) else list(parameters)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients, seen as one vector, to a norm of at most max_norm.

    Returns the norm before.

    The result is the norm before. Raises RuntimeError for infinite or NaN norms with error_if_nonfinite.

    parameters: whose gradients. norm_type: the order of the norm. foreach changes nothing.

    >>> x = kiln.zeros(2, requires_grad=True)
    >>> x.grad = kiln.tensor([3., 4.])
    >>> nn.utils.clip_grad_norm_([x], 1.)
    tensor(5.)
    >>> x.grad.norm().round()
    tensor(1.)
    """
    return _optim.clip_grad_norm_(
        _list(parameters), max_norm, norm_type, error_if_nonfinite=error_if_nonfinite
    )


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps each element of the gradients to [-clip_value, clip_value].

    parameters: whose gradients. foreach changes nothing.

    >>> x = kiln.zeros(2, requires_grad=True)
    >>> x.grad = kiln.tensor([3., -4.])
    >>> nn.utils.clip_grad_value_([x], 1.)
    >>> x.grad
    tensor([ 1., -1.])
    """
    _optim.clip_grad_value_(_list(parameters), clip_value)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of some tensors, such as gradients, seen as one vector.

    norm_type: the order of the norm. error_if_nonfinite: raise RuntimeError for inf and NaN.
    foreach changes nothing.

    >>> nn.utils.get_total_norm([kiln.tensor([3.]), kiln.tensor([4.])])
    tensor(5.)
    """
    from ... import linalg

    before = _C.is_grad_enabled()
    _C._set_grad_enabled(False)
    try:
        listed = _list(tensors)
        if not listed:
            return _C.tensor(0.0)
        device = listed[0].device
        norms = [linalg.vector_norm(x, float(norm_type)).to(device) for x in listed]
        total = linalg.vector_norm(_C.stack(norms), float(norm_type))
    finally:
        _C._set_grad_enabled(before)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise errors.RuntimeError(
            f"get_total_norm: the norm of order {norm_type} is non-finite, so it cannot clip; got"
            f" {total.item()}"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales the gradients by max_norm / total_norm where that is less than 1, in place.

    >>> x = kiln.zeros(2, requires_grad=True)
    >>> x.grad = kiln.tensor([2., 4.])
    >>> nn.utils.clip_grads_with_norm_([x], 1., kiln.tensor(2.))
    >>> x.grad.round()
    tensor([1., 2.])
    """
    gradients = [p.grad for p in _list(parameters) if p.grad is not None]
    if not gradients:
        return
    before = _C.is_grad_enabled()
    _C._set_grad_enabled(False)
    try:
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor.to(gradient.device))
    finally:
        _C._set_grad_enabled(before)


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """clip_grad_norm_() under its older name, with a warning.

    >>> w = kiln.ones(1, requires_grad=True)
    >>> (3 * w).backward()
    >>> nn.utils.clip_grad_norm([w], 1.0)
    tensor(3.)
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)
