"""MultiheadAttention and TransformerEncoderLayer."""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING

from ... import _C
from ..._C import Parameter
from .. import functional as F
from .. import init
from .._multi_head import attend as _attend
from ..layers import Dropout, LayerNorm, Linear
from ..module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ..._C import Tensor, dtype
    from ..._typing import DeviceLike

__all__ = ["SDPBackend", "sdpa_kernel"]  # the layers are nn's


class SDPBackend(enum.IntEnum):
    """PyTorch's ways to compute attention, for sdpa_kernel().

    >>> nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Accepted without effect: Kiln chooses how it computes attention.

    backends: which are allowed. set_priority: in this order.

    >>> with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
    ...     pass
    """
    yield


class MultiheadAttention(Module):
    """softmax(q k^T / sqrt(d)) v in num_heads subspaces (Vaswani et al., 2017).

    query [L, N, E], key [S, N, kdim], value [S, N, vdim] ([N, .., ..] with batch_first; N may be
    left out) -> the output in query's shape, and the weights [N, L, S] or None.

    embed_dim: E, the features of the query. dropout: of the weights. bias: whether linear layers
    have one. add_bias_kv: a key and a value that are trained stand behind the others;
    add_zero_attn: ones of zeros.

    >>> attention = nn.MultiheadAttention(4, 2, batch_first=True)
    >>> x = kiln.zeros(1, 3, 4)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (kiln.Size([1, 3, 4]), kiln.Size([1, 3, 3]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        options: dict[str, Any] = {"device": device, "dtype": dtype}

        def parameter(name, *shape):
            x = None if shape == () else Parameter(_C.empty(*shape, **options))
            self.register_parameter(name, x)

        if self._qkv_same_embed_dim:
            parameter("in_proj_weight", 3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                parameter(name)
        else:
            parameter("q_proj_weight", embed_dim, embed_dim)
            parameter("k_proj_weight", embed_dim, self.kdim)
            parameter("v_proj_weight", embed_dim, self.vdim)
            parameter("in_proj_weight")
        if bias:
            parameter("in_proj_bias", 3 * embed_dim)
        else:
            parameter("in_proj_bias")
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, **options)
        for name in ("bias_k", "bias_v"):
            if add_bias_kv:
                parameter(name, 1, 1, embed_dim)
            else:
                parameter(name)
        self._reset_parameters()

    def _reset_parameters(self):
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if (weight := getattr(self, name)) is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for x in (self.bias_k, self.bias_v):
            if x is not None:
                init.xavier_normal_(x)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Masks are PyTorch's: bool ones hold where attention is NOT allowed."""
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
            raise RuntimeError(
                "MultiheadAttention: query, key and value must all have 3 dims, or 2 without a "
                f"batch; got {query.dim()}, {key.dim()} and {value.dim()}"
            )
        batched = query.dim() == 3
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            same = key is query and value is query
            query = query.transpose(0, 1)
            key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
        output, weights = self._attend(
            query, key, value, key_padding_mask, need_weights, attn_mask, is_causal
        )
        if weights is not None:
            weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return output if self.batch_first else output.transpose(0, 1).contiguous(), weights

    def _projected(self, query, key, value):
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        if not self._qkv_same_embed_dim:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        elif query is key and key is value:
            return F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            weights = self.in_proj_weight.chunk(3)
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _attend(self, query, key, value, padding, need_weights, attn_mask, is_causal):
        q, k, v = self._projected(query, key, value)
        extra = (self.bias_k, self.bias_v, self.add_zero_attn)
        dropout = self.dropout if self.training else 0.0
        heads, weights = _attend(
            q, k, v, self.num_heads, extra, padding, attn_mask, dropout, need_weights, is_causal
        )
        return self.out_proj(heads), weights


def self_attention_block(
    self: Any,
    x: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    is_causal: bool = False,
) -> Tensor:
    """_sa_block of both kinds of layers of transformers: self-attention and its dropout."""
    x, _ = self.self_attn(
        x,
        x,
        x,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        need_weights=False,
        is_causal=is_causal,
    )
    return self.dropout1(x)


class TransformerEncoderLayer(Module):
    """Self-attention and a network of two linear layers, each with a residual connection and a norm:
    src [L, N, d_model] ([N, L, d_model] with batch_first) -> the same shape.

    nhead: heads of attention. dim_feedforward: the width between the two linear layers. dropout: of
    weights and outputs. activation: "relu", "gelu" or a function. layer_norm_eps: of the norms.
    norm_first: norms before each part instead of behind it. bias: whether layers have one.

    >>> nn.TransformerEncoderLayer(4, 2, batch_first=True)(kiln.zeros(1, 3, 4)).shape
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
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = getattr(F, activation)
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x):
            return self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal)

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + self._ff_block(x))

    # Subclasses override these, as in PyTorch.

    _sa_block = self_attention_block

    def _ff_block(self, x: Tensor) -> Tensor:
        """The two linear layers and their dropout."""
        activation: Any = self.activation
        return self.dropout2(self.linear2(self.dropout(activation(self.linear1(x)))))
