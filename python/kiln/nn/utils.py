"""Gradient clipping."""

from .. import _C
from .._C import _optim


def _list(parameters):
    return [parameters] if isinstance(parameters, _C.Tensor) else list(parameters)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scales the gradients, seen as one vector, to a norm of at most max_norm.

    Returns the norm before.
    """
    return _optim.clip_grad_norm_(
        _list(parameters), max_norm, norm_type, error_if_nonfinite=error_if_nonfinite
    )


def clip_grad_value_(parameters, clip_value):
    """Clamps each element of the gradients to [-clip_value, clip_value]."""
    _optim.clip_grad_value_(_list(parameters), clip_value)
