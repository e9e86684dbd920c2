"""TransformerEncoder, TransformerDecoderLayer, TransformerDecoder, Transformer (Vaswani et al.,
2017)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from .. import _C
from . import functional as F
from . import init
from .attention import MultiheadAttention, TransformerEncoderLayer, self_attention_block
from .container import ModuleList
from .layers import Dropout, LayerNorm, Linear
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor, dtype
    from .._typing import DeviceLike


def _activation(name, activation):
    """relu or gelu by name, or a function."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"{name}: activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _copies(name, layer, count):
    """Copies of a layer, each with parameters of its own."""
    if not isinstance(layer, Module):
        raise TypeError(f"{name}: expected a layer; got {type(layer).__name__}")
    if not 0 <= count <= 10000:
        raise ValueError(f"{name}: num_layers must be from 0 to 10000; got {count}")
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def _causal(mask, is_causal):
    """The hint that a mask is causal. Without a mask it is an error, which attention reports."""
    return bool(is_causal) and (mask is not None or is_causal is True)


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's memory, and a network of two linear layers, each
    with a residual connection and a norm: tgt [L, N, d_model], memory [S, N, d_model].

    d_model: features. nhead: heads of attention. dim_feedforward: the width between the two linear
    layers. dropout: of weights and outputs. activation: "relu", "gelu" or a function.
    layer_norm_eps: of the norms. batch_first: [N, L, d_model]. norm_first: norms before each part
    instead of behind it. bias: whether layers have one.

    >>> layer = nn.TransformerDecoderLayer(4, 2, batch_first=True)
    >>> layer(kiln.zeros(1, 3, 4), kiln.zeros(1, 5, 4)).shape
    kiln.Size([1, 3, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        attention: dict[str, Any] = {"dropout": dropout, "batch_first": batch_first, "bias": bias, **options}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        for i in (1, 2, 3):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options))
        for i in (1, 2, 3):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation("TransformerDecoderLayer", activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x):
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def look(x):
            return self._mha_block(
                x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )

        x = tgt
        for part, norm in (
            (attend, self.norm1),
            (look, self.norm2),
            (self._ff_block, self.norm3),
        ):
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x

    # Subclasses override these, as in PyTorch.

    _sa_block = self_attention_block

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention to the encoder's memory and its dropout."""
        x, _ = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        """The two linear layers and their dropout."""
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """num_layers copies of a layer, and a norm behind them.

    enable_nested_tensor and mask_check are taken for PyTorch's sake: tensors are dense.

    >>> layer = nn.TransformerEncoderLayer(4, 2, batch_first=True)
    >>> nn.TransformerEncoder(layer, num_layers=2)(kiln.zeros(1, 3, 4)).shape
    kiln.Size([1, 3, 4])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=_causal(mask, is_causal),
            )
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a layer, and a norm behind them.

    >>> layer = nn.TransformerDecoderLayer(4, 2, batch_first=True)
    >>> nn.TransformerDecoder(layer, num_layers=2)(kiln.zeros(1, 3, 4), kiln.zeros(1, 5, 4)).shape
    kiln.Size([1, 3, 4])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=_causal(tgt_mask, tgt_is_causal),
                memory_is_causal=_causal(memory_mask, memory_is_causal),
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder: src [S, N, d_model], tgt [L, N, d_model] -> [L, N, d_model].

    With batch_first [N, S, d_model] and [N, L, d_model]; N may be left out.

    nhead: heads of attention. num_encoder_layers, num_decoder_layers: how many layers each has;
    custom_encoder, custom_decoder: modules in their places. dim_feedforward: the width between the
    two linear layers. activation: "relu", "gelu" or a function. dropout: of weights and outputs.
    layer_norm_eps: of the norms. norm_first: norms before each part instead of behind it. bias:
    whether layers have one.

    >>> net = nn.Transformer(4, 2, 1, 1, dim_feedforward=8, batch_first=True)
    >>> net(kiln.zeros(1, 5, 4), kiln.zeros(1, 3, 4)).shape
    kiln.Size([1, 3, 4])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip

        def norm():
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)

        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*layer, **options)
            custom_encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*layer, **options)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError(
                "Transformer: the batch number of src and tgt must be equal; got "
                f"{src.size(batch)} and {tgt.size(batch)}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"Transformer: the feature number of src and tgt must be equal to d_model "
                f"{self.d_model}; got {src.size(-1)} and {tgt.size(-1)}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike | None = None, dtype: dtype | None = None
    ) -> Tensor:
        """-inf above the diagonal: a step sees no later one."""
        return _C.triu(_C.full((sz, sz), float("-inf"), dtype=dtype, device=device), 1)

    def _reset_parameters(self):
        for x in self.parameters():
            if x.dim() > 1:
                init.xavier_uniform_(x)
