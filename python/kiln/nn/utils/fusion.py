"""A normalization folded into the layer before it, for inference."""

import copy

from ... import _C, errors


def _check_eval(op, layer, bn):
    if layer.training or bn.training:
        raise errors.AssertionError(f"{op}: both layers must be in eval mode; call eval() first")
    if bn.running_mean is None or bn.running_var is None:
        raise errors.AssertionError(f"{op}: the normalization has no running statistics")


def _fused(weight, bias, shape, mean, var, eps, scale, shift):
    """The layer's weight and bias as Parameters; `shape` is that of the scales over the weight."""
    channels = mean.shape[0]
    factor = (var + eps).rsqrt() * (1 if scale is None else scale)
    if channels != 1 and weight.shape[shape.index(-1)] != channels:
        raise errors.AssertionError(
            f"fuse: expected a normalization of {weight.shape[shape.index(-1)]} channels; got"
            f" {channels}"
        )
    offset = (-mean if bias is None else bias - mean) * factor
    if shift is not None:
        offset = offset + shift
    trains = weight.requires_grad
    dtype = weight.dtype if bias is None else bias.dtype
    return (
        _C.Parameter((weight * factor.reshape(shape)).detach().to(weight.dtype), trains),
        _C.Parameter(offset.detach().to(dtype), trains if bias is None else bias.requires_grad),
    )


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """One convolution that computes bn(conv(x)) in eval mode; neither layer is changed.

    transpose: for a transposed convolution.
    """
    _check_eval("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weight and bias of a convolution followed by a normalization with running statistics."""
    if bn_rm is None or bn_rv is None:
        raise errors.AssertionError("fuse_conv_bn: the normalization has no running statistics")
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (conv_w.dim() - 2)
    return _fused(conv_w, conv_b, shape, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear, bn):
    """One linear layer that computes bn(linear(x)) in eval mode; neither layer is changed."""
    _check_eval("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise errors.AssertionError(
            "fuse_linear_bn_eval: To fuse, linear.out_features == bn.num_features or"
            f" bn.num_features == 1; got {linear.out_features} and {bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of a linear layer followed by a normalization with running statistics."""
    return _fused(linear_w, linear_b, [-1, 1], bn_rm, bn_rv, bn_eps, bn_w, bn_b)
