"""What PyTorch's classes of single layers have beside forward."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING

from .. import _C, errors
from ..autograd.grad_mode import no_grad
from . import _reduction, functional, layers

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


def _from_pretrained(cls, embeddings, freeze=True, **options):
    """A layer whose table is `embeddings` [rows, dim], which with freeze requires no gradient."""
    if embeddings.dim() != 2:
        raise ValueError(
            f"{cls.__name__}.from_pretrained: expected a table of 2 dims; got "
            f"{list(embeddings.shape)}"
        )
    rows, dim = embeddings.shape
    layer = cls(rows, dim, _weight=embeddings, **options)
    layer.weight.requires_grad_(not freeze)
    return layer


def _embedding(
    cls: Any,
    embeddings: Tensor,
    freeze: bool = True,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    return _from_pretrained(
        cls,
        embeddings,
        freeze,
        padding_idx=padding_idx,
        max_norm=max_norm,
        norm_type=norm_type,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )


def _embedding_bag(
    cls: Any,
    embeddings: Tensor,
    freeze: bool = True,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    return _from_pretrained(
        cls,
        embeddings,
        freeze,
        max_norm=max_norm,
        norm_type=norm_type,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=mode,
        sparse=sparse,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )


for _class, _function in ((layers.Embedding, _embedding), (layers.EmbeddingBag, _embedding_bag)):
    _function.__name__, _function.__doc__ = "from_pretrained", _from_pretrained.__doc__
    setattr(_class, "from_pretrained", classmethod(_function))


def _flatten_parameters(self: Any) -> None:
    """Nothing: the weights need no order of their own in memory."""


def _all_weights(self: Any) -> list[list[Any]]:
    """The parameters, a list for each direction of each layer."""
    each = (4 if self.bias else 2) + (getattr(self, "proj_size", 0) > 0)
    weights = list(self._parameters.values())
    return [weights[i : i + each] for i in range(0, len(weights), each)]


_MODES = {"LSTM": lambda self: "LSTM", "GRU": lambda self: "GRU",
          "RNN": lambda self: f"RNN_{self.nonlinearity.upper()}"}  # fmt: skip
for _name, _mode in _MODES.items():
    _class = getattr(layers, _name)
    _class.flatten_parameters = _flatten_parameters
    _class.all_weights = property(_all_weights)
    _class.mode = property(_mode, doc="What kind of recurrent layer it is, as a text.")
for _name in ("RNN", "GRU"):
    getattr(layers, _name).proj_size = 0
for _kind in ("Conv", "ConvTranspose"):
    for _dims in (1, 2, 3):
        _class = getattr(layers, f"{_kind}{_dims}d")
        _class.transposed = _kind == "ConvTranspose"


def _conv_forward(self: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The convolution with another weight and bias, and this layer's options."""
    dims = len(self.kernel_size)
    options = (self.stride, self.padding, self.dilation, self.groups)
    if self.padding_mode != "zeros":
        edges = [(k - 1) * d for k, d in zip(self.kernel_size, self.dilation)]
        if self.padding == "same":
            sides = [side for edge in reversed(edges) for side in (edge // 2, edge - edge // 2)]
        else:
            sizes = (0,) * dims if self.padding == "valid" else self.padding
            sides = [side for size in reversed(sizes) for side in (size, size)]
        input = functional.pad(input, sides, mode=self.padding_mode)
        options = (self.stride, 0, self.dilation, self.groups)
    return getattr(functional, f"conv{dims}d")(input, weight, bias, *options)


for _dims in (1, 2, 3):
    getattr(layers, f"Conv{_dims}d")._conv_forward = _conv_forward


def _flat_weights_names(self: Any) -> list[str]:
    """The names of the parameters, in PyTorch's order."""
    return list(self._parameters)


def _flat_weights(self: Any) -> list[Any]:
    """The parameters, in PyTorch's order."""
    return list(self._parameters.values())


for _name in _MODES:
    _class = getattr(layers, _name)
    _class._flat_weights_names = property(_flat_weights_names)
    _class._flat_weights = property(_flat_weights)


def _check_input_dim(self: Any, input: Tensor) -> None:
    """Raises ValueError unless the input has a number of dims that the layer takes."""
    legal = self._input_dims
    if input.dim() not in legal:
        raise errors.ValueError(
            f"{type(self).__name__}: expected an input of {' or '.join(map(str, legal))} dims; got "
            f"{input.dim()}"
        )


for _dims in (1, 2, 3):
    for _name in ("BatchNorm", "InstanceNorm"):
        _class = getattr(layers, f"{_name}{_dims}d")
        _class._check_input_dim = _check_input_dim
        # Without a batch, too, where the layer can tell.
        _batchless = _name == "InstanceNorm" or _dims == 1
        _class._input_dims = (_dims + 1, _dims + 2) if _batchless else (_dims + 2,)
    getattr(layers, f"Conv{_dims}d").output_padding = (0,) * _dims


# ---- What PyTorch's own code uses, and so do classes that derive from its layers


def _all_weights_names(self: Any) -> list[list[str]]:
    """The names of the parameters, a list for each direction of each layer."""
    each = (4 if self.bias else 2) + (getattr(self, "proj_size", 0) > 0)
    names = list(self._parameters)
    return [names[i : i + each] for i in range(0, len(names), each)]


for _name in _MODES:
    getattr(layers, _name)._all_weights = property(_all_weights_names)


def _fill_padding_idx_with_zero(self: Any) -> None:
    """Zeros in the table's row of padding_idx, if there is one."""
    if self.padding_idx is not None:
        with no_grad():
            self.weight[self.padding_idx].fill_(0)


for _name in ("Embedding", "EmbeddingBag"):
    getattr(layers, _name)._fill_padding_idx_with_zero = _fill_padding_idx_with_zero
for _name in ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"):
    getattr(layers, _name).name = property(
        lambda self: type(self).__name__, doc="The name of the class."
    )


def _reversed_padding_repeated_twice(self: Any) -> Any:
    """The padding of each side as functional.pad takes it: from the last dim to the first."""
    if self.padding == "valid":
        return [0] * (2 * len(self.kernel_size))
    if self.padding == "same":
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
        return [side for t in reversed(totals) for side in (t // 2, t - t // 2)]
    return tuple(size for size in reversed(self.padding) for _ in range(2))


def _output_padding(
    self: Any,
    input: Tensor,
    output_size: Any,
    stride: Any,
    padding: Any,
    kernel_size: Any,
    num_spatial_dims: int,
    dilation: Any = None,
) -> Any:
    """What must be added to the output's smallest size to get output_size; None for the layer's own."""
    if output_size is None:
        return self.output_padding
    dims = num_spatial_dims
    others = 2 if input.dim() == dims + 2 else 1
    sizes = list(output_size)
    if len(sizes) == others + dims:
        sizes = sizes[others:]
    if len(sizes) != dims:
        raise errors.ValueError(
            f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or "
            f"{others + dims} elements (got {len(sizes)})"
        )
    steps = [1] * dims if dilation is None else dilation
    least = [
        (input.size(d + others) - 1) * stride[d]
        - 2 * padding[d]
        + steps[d] * (kernel_size[d] - 1)
        + 1
        for d in range(dims)
    ]
    most = [size + stride[d] - 1 for d, size in enumerate(least)]
    if not all(a <= size <= b for a, size, b in zip(least, sizes, most)):
        raise errors.ValueError(
            f"requested an output size of {sizes}, but valid sizes range from {least} to {most} (for "
            f"an input of {input.shape[2:]})"
        )
    return [size - a for size, a in zip(sizes, least)]


for _dims in (1, 2, 3):
    for _kind in ("Conv", "ConvTranspose"):
        _class = getattr(layers, f"{_kind}{_dims}d")
        _class._reversed_padding_repeated_twice = property(_reversed_padding_repeated_twice)
    getattr(layers, f"ConvTranspose{_dims}d")._output_padding = _output_padding


# Options that a class has one value of.
_values: dict[str, Any] = {
    "ReLU6": {"min_val": 0.0, "max_val": 6.0},
    "UpsamplingNearest2d": {"mode": "nearest", "align_corners": None, "recompute_scale_factor": None},
    "UpsamplingBilinear2d": {"mode": "bilinear", "align_corners": True, "recompute_scale_factor": None},
    **{f"ZeroPad{dims}d": {"value": 0.0} for dims in (1, 2, 3)},
}
for _name, _options in _values.items():
    for _option, _value in _options.items():
        setattr(getattr(layers, _name), _option, _value)
layers.PairwiseDistance.norm = property(  # type: ignore[attr-defined]
    lambda self: self.p, doc="The order of the norm: p."
)


def _with_warning(init: Any) -> Any:
    """__init__ of a recurrent layer that says when its dropout does nothing."""

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if self.num_layers == 1 and self.dropout > 0:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
                f"expects num_layers greater than 1, but got dropout={self.dropout} and num_layers=1",
                stacklevel=2,
            )

    return wrapped


for _name in _MODES:
    getattr(layers, _name).__init__ = _with_warning(getattr(layers, _name).__init__)


def _with_older_reduction(cls):
    """The loss's __init__ with size_average= and reduce=, older names of reduction=."""
    plain = cls.__init__

    @functools.wraps(plain)
    def __init__(self, *args, size_average=None, reduce=None, **kwargs):
        if size_average is not None or reduce is not None:
            kwargs["reduction"] = _reduction.legacy_get_string(size_average, reduce)
        plain(self, *args, **kwargs)

    cls.__init__ = __init__


for _loss in layers.homes["loss"].values():
    if "reduction" in inspect.signature(_loss.__init__).parameters:
        _with_older_reduction(_loss)
