"""Layers as calls of nn.functional: what a handler of functions sees of them.

The layers' arithmetic is C++'s. Where a class or a mode overrides functions (see kiln.overrides), the
common layers go through the functions that PyTorch's layers call, with their weights as arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _convolution(function: Any) -> Callable[..., Any]:
    def form(m: Any, x: Any) -> Any:
        if m.padding_mode != "zeros":
            return NotImplemented
        return function(x, m.weight, m.bias, m.stride, m.padding, m.dilation, m.groups)

    return form


def _transposed(function: Any) -> Callable[..., Any]:
    def form(m: Any, x: Any, output_size: Any = None) -> Any:
        if output_size is not None:
            return NotImplemented
        return function(
            x, m.weight, m.bias, m.stride, m.padding, m.output_padding, m.groups, m.dilation
        )

    return form


def _batch_norm(m: Any, x: Any) -> Any:
    if m.training and m.track_running_stats:
        if m.momentum is None:
            return NotImplemented
        m.num_batches_tracked.add_(1)
    ours = m.running_mean is None or (m.training and not m.track_running_stats)
    mean, var = (None, None) if ours else (m.running_mean, m.running_var)
    own = m.training or m.running_mean is None
    return F.batch_norm(x, mean, var, m.weight, m.bias, own, m.momentum or 0.0, m.eps)


def _max_pool(function: Any) -> Callable[..., Any]:
    def form(m: Any, x: Any) -> Any:
        return function(
            x, m.kernel_size, m.stride, m.padding, m.dilation,
            ceil_mode=m.ceil_mode, return_indices=m.return_indices,
        )  # fmt: skip

    return form


def _in_place(name: str, *options: str) -> Callable[..., Any]:
    function = getattr(F, name)

    def form(m: Any, x: Any) -> Any:
        return function(x, **{each: getattr(m, each) for each in options}, inplace=m.inplace)

    return form


def _with(name: str, *options: str) -> Callable[..., Any]:
    """The function of the inputs and of the layer's attributes of these names."""
    function = getattr(F, name)

    def form(m: Any, *inputs: Any) -> Any:
        return function(*inputs, **{each: getattr(m, each) for each in options})

    return form


def _dropout(name: str) -> Callable[..., Any]:
    function = getattr(F, name)
    return lambda m, x: function(x, m.p, m.training, m.inplace)


def _linear(m: Any, x: Any, **options: Any) -> Any:
    return F.linear(x, m.weight, m.bias, **options)


FORMS: dict[str, Callable[..., Any]] = {
    "Linear": _linear,
    "Bilinear": lambda m, a, b: F.bilinear(a, b, m.weight, m.bias),
    "Embedding": lambda m, x: F.embedding(
        x, m.weight, m.padding_idx, m.max_norm, m.norm_type, m.scale_grad_by_freq, m.sparse
    ),
    **{f"Conv{n}d": _convolution(getattr(F, f"conv{n}d")) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": _transposed(getattr(F, f"conv_transpose{n}d")) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": _batch_norm for n in (1, 2, 3)},
    **{f"MaxPool{n}d": _max_pool(getattr(F, f"max_pool{n}d")) for n in (1, 2, 3)},
    "AvgPool1d": _with(
        "avg_pool1d", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"
    ),
    **{
        f"AvgPool{n}d": _with(
            f"avg_pool{n}d", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
            "divisor_override",
        )
        for n in (2, 3)
    },
    **{
        f"Adaptive{kind}Pool{n}d": _with(f"adaptive_{kind.lower()}_pool{n}d", "output_size")
        for kind in ("Avg",) for n in (1, 2, 3)
    },
    "LayerNorm": _with("layer_norm", "normalized_shape", "weight", "bias", "eps"),
    "GroupNorm": _with("group_norm", "num_groups", "weight", "bias", "eps"),
    "RMSNorm": _with("rms_norm", "normalized_shape", "weight", "eps"),
    "Dropout": _dropout("dropout"),
    "Dropout1d": _dropout("dropout1d"),
    "Dropout2d": _dropout("dropout2d"),
    "Dropout3d": _dropout("dropout3d"),
    "AlphaDropout": lambda m, x: F.alpha_dropout(x, m.p, m.training),
    "ReLU": _in_place("relu"),
    "ReLU6": _in_place("relu6"),
    "SELU": _in_place("selu"),
    "SiLU": _in_place("silu"),
    "Mish": _in_place("mish"),
    "Hardswish": _in_place("hardswish"),
    "Hardsigmoid": _in_place("hardsigmoid"),
    "ELU": _in_place("elu", "alpha"),
    "CELU": _in_place("celu", "alpha"),
    "LeakyReLU": _in_place("leaky_relu", "negative_slope"),
    "Hardtanh": _in_place("hardtanh", "min_val", "max_val"),
    "Threshold": _in_place("threshold", "threshold", "value"),
    "GELU": _with("gelu", "approximate"),
    "GLU": _with("glu", "dim"),
    "Softplus": _with("softplus", "beta", "threshold"),
    "Softmax": _with("softmax", "dim"),
    "LogSoftmax": _with("log_softmax", "dim"),
    "LogSigmoid": _with("logsigmoid"),
    "Softsign": _with("softsign"),
    "Sigmoid": _with("sigmoid"),
    "Tanh": _with("tanh"),
    "PReLU": _with("prelu", "weight"),
    "PixelShuffle": _with("pixel_shuffle", "upscale_factor"),
    "PixelUnshuffle": _with("pixel_unshuffle", "downscale_factor"),
    "Flatten": lambda m, x: x.flatten(m.start_dim, m.end_dim),
    "CrossEntropyLoss": _with(
        "cross_entropy", "weight", "ignore_index", "reduction", "label_smoothing"
    ),
    "NLLLoss": _with("nll_loss", "weight", "ignore_index", "reduction"),
    "BCELoss": _with("binary_cross_entropy", "weight", "reduction"),
    "BCEWithLogitsLoss": _with(
        "binary_cross_entropy_with_logits", "weight", "pos_weight", "reduction"
    ),
    "MSELoss": _with("mse_loss", "reduction"),
    "L1Loss": _with("l1_loss", "reduction"),
    "SmoothL1Loss": _with("smooth_l1_loss", "reduction", "beta"),
    "HuberLoss": _with("huber_loss", "reduction", "delta"),
    "KLDivLoss": _with("kl_div", "reduction", "log_target"),
}
