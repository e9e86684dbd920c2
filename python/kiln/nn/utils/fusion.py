"""Normalizations folded into the layers before them, and layers joined, for inference."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from ... import _C, errors
from .. import layers
from ..container import Sequential
from .fused_layers import SeparableSequential, has_blocks, hooked, with_activation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..._C import Parameter, Tensor
    from ..._typing import M
    from ..module import Module


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


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """One convolution that computes bn(conv(x)) in eval mode; neither layer is changed.

    transpose: whether conv is transposed.

    >>> conv, norm, x = nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1).eval(), kiln.ones(1, 1, 1, 1)
    >>> kiln.allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-6)
    True
    """
    _check_eval("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a convolution followed by a normalization with running statistics.

    conv_w, conv_b: the convolution's weight and bias. bn_rm, bn_rv, bn_eps: running mean and
    variance, and eps. bn_w, bn_b: the norm's weight and bias, or None. transpose: whether the
    convolution is transposed.

    >>> one = kiln.ones(1)
    >>> weight, bias = nn.utils.fuse_conv_bn_weights(kiln.ones(1, 1, 1), None, one, one, 0., None, None)
    >>> weight.item(), bias.item()
    (1.0, -1.0)
    """
    if bn_rm is None or bn_rv is None:
        raise errors.AssertionError("fuse_conv_bn: the normalization has no running statistics")
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (conv_w.dim() - 2)
    return _fused(conv_w, conv_b, shape, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """One linear layer that computes bn(linear(x)) in eval mode; neither layer is changed.

    >>> linear, norm, x = nn.Linear(2, 2).eval(), nn.BatchNorm1d(2).eval(), kiln.ones(1, 2)
    >>> kiln.allclose(nn.utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-6)
    True
    """
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


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a linear layer followed by a normalization with running statistics.

    linear_w, linear_b: the layer's weight and bias. bn_rm, bn_rv, bn_eps: running mean and
    variance, and eps. bn_w, bn_b: the norm's weight and bias.

    >>> one = kiln.ones(1)
    >>> weight, bias = nn.utils.fuse_linear_bn_weights(kiln.ones(1, 1), one, one, one, 0., one, one)
    >>> weight.item(), bias.item()  # (x + 1 - 1) / 1 + 1
    (1.0, 1.0)
    """
    return _fused(linear_w, linear_b, [-1, 1], bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _join_activations(module):
    """Activations behind layers that compute them, in a Sequential or as a class says in `fusable`; an
    Identity takes their place."""
    users = _users(module)
    for parent in list(module.modules()):
        for name, activation in getattr(type(parent), "fusable", ()):
            _join_activation(parent, name, activation, users)
        if not (isinstance(parent, Sequential) and type(parent).forward is Sequential.forward):
            continue
        before = None
        for name, layer in list(parent._modules.items()):
            if before is not None and _join_activation(parent, before, name, users):
                continue
            if type(layer) is not layers.Identity or hooked(layer):
                before = name


def _join_activation(parent, name, activation, users):
    """Whether the layer of one name computes the activation of the other from now on."""
    first, second = parent._modules.get(name), parent._modules.get(activation)
    if first is None or second is None or users.get(id(first), 1) > 1 or hooked(first):
        return False
    new = with_activation(first, second)
    if new is None:
        return False
    setattr(parent, name, new)
    setattr(parent, activation, layers.Identity().eval())
    return True


def _join_convolutions(module):
    """Depthwise convolutions and those of 1 x 1 around them, in a Sequential."""
    for parent in list(module.modules()):
        if type(parent) is Sequential and has_blocks(parent):
            parent.__class__ = SeparableSequential


def _users(module):
    """How many places of the tree hold each module, by its id."""
    users: dict[int, int] = {}
    for parent in module.modules():
        for child in parent._modules.values():
            users[id(child)] = users.get(id(child), 0) + 1
    return users


_CONVOLUTIONS = (layers.Conv1d, layers.Conv2d, layers.Conv3d)
_TRANSPOSED = (layers.ConvTranspose1d, layers.ConvTranspose2d, layers.ConvTranspose3d)
_NORMS = (layers.BatchNorm1d, layers.BatchNorm2d, layers.BatchNorm3d)


def _folded(first, norm):
    """The layer that does both, or None where they do not go together."""
    if type(norm) not in _NORMS or norm.running_mean is None or norm.running_var is None:
        return None
    if type(first) in _CONVOLUTIONS and first.out_channels == norm.num_features:
        return fuse_conv_bn_eval(first, norm)
    if type(first) in _TRANSPOSED and first.groups == 1 and first.out_channels == norm.num_features:
        return fuse_conv_bn_eval(first, norm, transpose=True)
    if type(first) is layers.Linear and first.out_features == norm.num_features:
        return fuse_linear_bn_eval(first, norm)
    return None


def _neighbours(module):
    """(parent, name of a layer, name of what its output alone goes to)"""
    for parent in module.modules():
        if isinstance(parent, Sequential) and type(parent).forward is Sequential.forward:
            names = list(parent._modules)
            yield from ((parent, *pair) for pair in zip(names, names[1:]))
        yield from ((parent, *pair) for pair in getattr(type(parent), "fusable", ()))


def fuse_(module: M, pairs: Iterable[tuple[str, str]] = ()) -> M:
    """Folds batch normalizations into the convolutions before them, lets layers compute the activations
    behind them, and runs depthwise convolutions together with those of 1 x 1 around them; returns the
    module.

    For inference: the module must be in eval mode. Found are layers that follow one another in a
    Sequential, those that a class names in `fusable`, a tuple of pairs of names as models of
    kiln.models have it, and `pairs`: paths ("block.conv", "block.norm") where the norm alone gets
    the output of a convolution, or of a Linear with outputs of two dims. An Identity takes the
    norm's place, so that the code stays; the state dict has the folded weights. Layers with hooks,
    and norms without running statistics, stay.

    A Linear, Conv1d, Conv2d or ConvTranspose2d that an activation follows, in a Sequential or by a
    class's `fusable`, becomes a LinearActivation, ConvActivation1d, ConvActivation2d or
    ConvTransposeActivation2d, and an Identity takes the activation's place. ReLU, ReLU6, GELU, SiLU, Hardswish, Hardsigmoid, Sigmoid and Tanh
    are known. Values are the same.

    A Sequential with a depthwise convolution beside one of 1 x 1 becomes a SeparableSequential, which
    runs them together; those of another Sequential inside it count, too. Values are the same.

    >>> net = nn.utils.fuse_(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)).eval())
    >>> type(net[1]).__name__
    'Identity'
    """
    if module.training:
        raise errors.AssertionError("fuse_: the module must be in eval mode; call eval() first")
    found = list(_neighbours(module))
    explicit = []
    for first, norm in pairs:
        (path, _, a), (other, _, b) = (name.rpartition(".") for name in (first, norm))
        parent, norm_parent = module.get_submodule(path), module.get_submodule(other)
        new = _folded(parent.get_submodule(a), norm_parent.get_submodule(b))
        if new is None:
            raise errors.ValueError(
                f"fuse_: expected a convolution or Linear and a batch normalization of its outputs "
                f"with running statistics; got {first!r} and {norm!r}"
            )
        explicit.append((parent, a, norm_parent, b, new))
    users = _users(module)
    for parent, a, b in found:
        first, norm = parent._modules.get(a), parent._modules.get(b)
        if first is None or norm is None or hooked(first) or hooked(norm):
            continue
        if type(first) is layers.Linear:  # with outputs of three dims the norm is over another one
            continue
        if users[id(first)] > 1 or users[id(norm)] > 1:  # shared: another place means it unfolded
            continue
        new = _folded(first, norm)
        if new is not None:
            explicit.append((parent, a, parent, b, new))
    for parent, a, norm_parent, b, new in explicit:
        setattr(parent, a, new)
        setattr(norm_parent, b, layers.Identity().eval())
    _join_activations(module)
    _join_convolutions(module)
    return module
