"""Gradient clipping, and layers folded for inference."""

import copy

from ... import _C
from ..._C import _optim
from . import rnn as rnn


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


def fuse_conv_bn_eval(conv, bn):
    """One convolution that computes bn(conv(x)) in eval mode; neither layer is changed."""
    if conv.training or bn.training:
        raise ValueError("fuse_conv_bn_eval: both layers must be in eval mode; call eval() first")
    fused = copy.deepcopy(conv)
    weight, bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    fused.weight, fused.bias = weight, bias
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of a convolution followed by a normalization with running statistics."""
    if bn_rm is None:
        raise ValueError("fuse_conv_bn: the normalization has no running statistics")
    if len(bn_rm) != len(conv_w):
        raise ValueError(
            f"fuse_conv_bn: expected a normalization of {len(conv_w)} channels; got {len(bn_rm)}"
        )
    weight, trainable = conv_w.detach(), conv_w.requires_grad
    scale = (bn_rv + bn_eps).rsqrt()
    if bn_w is not None:
        scale = scale * bn_w.detach()
    shift = (-bn_rm if conv_b is None else conv_b.detach() - bn_rm) * scale
    if bn_b is not None:
        shift = shift + bn_b.detach()
    weight = weight * scale.reshape(-1, *[1] * (weight.dim() - 1))
    return (
        _C.Parameter(weight.to(conv_w.dtype), trainable),
        _C.Parameter(shift.to(conv_w.dtype), trainable),
    )
