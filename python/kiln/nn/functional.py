"""The neural ops without modules."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .. import _C, _compositions
from . import _reduction as _Reduction  # noqa: F401  PyTorch's name of it here
from .._C import one_hot as one_hot
from .._C._functional import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d as adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
    affine_grid as affine_grid,
    alpha_dropout as alpha_dropout,
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d,
    batch_norm as batch_norm,
    bilinear as bilinear,
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    celu as celu,
    celu_ as celu_,
    channel_shuffle as channel_shuffle,
    conv1d as conv1d,
    conv2d as conv2d,
    conv3d as conv3d,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
    cosine_embedding_loss as cosine_embedding_loss,
    cosine_similarity as cosine_similarity,
    cross_entropy as cross_entropy,
    ctc_loss as ctc_loss,
    deform_conv2d as deform_conv2d,
    dice_loss as dice_loss,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    elu as elu,
    elu_ as elu_,
    embedding as embedding,
    embedding_bag as embedding_bag,
    feature_alpha_dropout as feature_alpha_dropout,
    focal_loss as focal_loss,
    fold as fold,
    fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
    fractional_max_pool3d as fractional_max_pool3d,
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
    gaussian_nll_loss as gaussian_nll_loss,
    gelu as gelu,
    glu as glu,
    grid_sample as grid_sample,
    group_norm as group_norm,
    gumbel_softmax as gumbel_softmax,
    hardshrink as hardshrink,
    hardsigmoid as hardsigmoid,
    hardsigmoid_ as hardsigmoid_,
    hardswish as hardswish,
    hardswish_ as hardswish_,
    hardtanh as hardtanh,
    hardtanh_ as hardtanh_,
    hinge_embedding_loss as hinge_embedding_loss,
    huber_loss as huber_loss,
    info_nce_loss as info_nce_loss,
    instance_norm as instance_norm,
    interpolate as interpolate,
    kl_div as kl_div,
    l1_loss as l1_loss,
    layer_norm as layer_norm,
    leaky_relu as leaky_relu,
    leaky_relu_ as leaky_relu_,
    linear as linear,
    local_response_norm as local_response_norm,
    logsigmoid as logsigmoid,
    lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d,
    lp_pool3d as lp_pool3d,
    margin_ranking_loss as margin_ranking_loss,
    max_pool1d as max_pool1d,
    max_pool1d_with_indices as max_pool1d_with_indices,
    max_pool2d as max_pool2d,
    max_pool2d_with_indices as max_pool2d_with_indices,
    max_pool3d as max_pool3d,
    max_pool3d_with_indices as max_pool3d_with_indices,
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
    mish as mish,
    mish_ as mish_,
    mse_loss as mse_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    nll_loss as nll_loss,
    normalize as normalize,
    pairwise_distance as pairwise_distance,
    pad as pad,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
    poisson_nll_loss as poisson_nll_loss,
    prelu as prelu,
    quiet_softmax as quiet_softmax,
    relu as relu,
    relu6 as relu6,
    relu6_ as relu6_,
    rms_norm as rms_norm,
    rnnt_loss as rnnt_loss,
    rrelu as rrelu,
    rrelu_ as rrelu_,
    scaled_dot_product_attention as scaled_dot_product_attention,
    selu as selu,
    selu_ as selu_,
    separable_conv2d as separable_conv2d,
    shrink as shrink,
    silu as silu,
    smooth_l1_loss as smooth_l1_loss,
    soft_margin_loss as soft_margin_loss,
    softmin as softmin,
    softplus as softplus,
    softshrink as softshrink,
    softsign as softsign,
    swiglu as swiglu,
    tanhshrink as tanhshrink,
    threshold as threshold,
    threshold_ as threshold_,
    thresholded_relu as thresholded_relu,
    triplet_margin_loss as triplet_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
    unfold as unfold,
)

from ._grouped_mm import grouped_mm as grouped_mm
from ._multi_head import multi_head_attention_forward as multi_head_attention_forward

if TYPE_CHECKING:
    from .._C import Tensor, dtype
    from .._typing import Floats, Ints

sigmoid = _C.sigmoid
tanh = _C.tanh
relu_ = _C.Tensor.relu_
silu_ = _C.Tensor.silu_


def _dim_or_usual(op, input, dim):
    """PyTorch's dim where none is given: the first of 0, 1 and 3 dims, else the second."""
    if dim is not None:
        return dim
    usual = 0 if input.dim() in (0, 1, 3) else 1
    warnings.warn(f"{op}: expected dim; without it PyTorch's choice is {usual}", stacklevel=3)
    return usual


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """PyTorch's dim where none is given, with its warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as "
        "an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """exp(x) / sum(exp(x)) over dim.

    dim: along which the numbers become positive and sum to 1. dtype: what input is converted to first.
    _stacklevel: PyTorch's, not looked at.

    >>> F.softmax(kiln.tensor([0., 0.]), 0)
    tensor([0.5000, 0.5000])
    """
    return _C.softmax(input, _dim_or_usual("softmax", input, dim), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """log(softmax(x)) over dim, without overflow; arguments as of softmax().

    >>> F.log_softmax(kiln.tensor([0., 0.]), 0).exp()
    tensor([0.5000, 0.5000])
    """
    return _C.log_softmax(input, _dim_or_usual("log_softmax", input, dim), dtype)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances between all pairs of rows of a matrix.

    >>> F.pdist(kiln.tensor([[0., 0.], [3., 4.]]))
    tensor([5.])
    """
    return _compositions.pdist(input, p)


def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """interpolate() under its old name.

    size, scale_factor, mode, align_corners: as interpolate() takes them.

    >>> F.upsample(kiln.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: Floats | None = None
) -> Tensor:
    """interpolate() to the nearest element.

    size: the new spatial sizes; or scale_factor: these divided by the old ones.

    >>> F.upsample_nearest(kiln.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: Floats | None = None
) -> Tensor:
    """interpolate() between four elements, with the corners' centres aligned.

    size: the new spatial sizes; or scale_factor: these divided by the old ones.

    >>> F.upsample_bilinear(kiln.tensor([[[[1., 3.]]]]), size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """cross_entropy of linear(input, linear_weight, linear_bias): input [N, in], weight [C, in].

    With a weight [C, d1, .., dk, in], and a bias [C, d1, .., dk], each row has d1 .. dk classes to
    tell: the target is [N, d1, .., dk], or [N, C, d1, .., dk] with probabilities.

    reduction, ignore_index, label_smoothing: as cross_entropy() takes them.

    >>> F.linear_cross_entropy(kiln.zeros(1, 3), kiln.ones(2, 3), kiln.tensor([0])).exp()
    tensor(2.)
    """
    if linear_weight.dim() < 2 or (linear_weight.dim() > 2 and input.dim() != 2):
        raise RuntimeError(
            "linear_cross_entropy: expected a linear_weight [classes, .., in_features], of two dims "
            f"unless the input is [N, in_features]; got {list(linear_weight.shape)} for an input "
            f"{list(input.shape)}"
        )
    places = list(linear_weight.shape[:-1])
    if linear_bias is not None and list(linear_bias.shape) != places:
        raise RuntimeError(
            f"linear_cross_entropy: expected a linear_bias {places}; got {list(linear_bias.shape)}"
        )
    if len(places) > 1:
        linear_weight = linear_weight.flatten(0, -2)
        linear_bias = None if linear_bias is None else linear_bias.flatten()
    logits = linear(input, linear_weight, linear_bias)
    if len(places) > 1:
        logits = logits.reshape([input.shape[0], *places])
    index = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
