"""What PyTorch's classes of single layers have beside forward."""

from . import layers


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
    cls,
    embeddings,
    freeze=True,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
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
    cls,
    embeddings,
    freeze=True,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    include_last_offset=False,
    padding_idx=None,
):
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


def _flatten_parameters(self):
    """Nothing: the weights need no order of their own in memory."""


def _all_weights(self):
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
