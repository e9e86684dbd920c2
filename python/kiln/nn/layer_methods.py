"""What PyTorch's classes of single layers have beside forward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import layers

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
