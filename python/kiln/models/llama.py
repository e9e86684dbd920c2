"""Llama (Touvron et al., 2023) and models of its kind, with the keys and options of Hugging Face's
transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import kiln
from kiln import nn

from ._causal import CausalLM, continued
from ._config import Config, Output
from .gguf_llama import keep_quantized, read_llama
from ._pretrained import (
    PretrainedModel,
    activation,
    causal_mask,
    check_input_ids,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._C import Tensor, dtype
    from .._typing import StrPath
    from ._cache import KeyValueCache


@dataclass
class LlamaConfig(Config):
    """rope_scaling and rope_parameters are dicts as `config.json` has them: their "rope_type" may
    be "default", "linear" or "llama3"; or "factors", a list by which frequencies are divided.

    vocab_size: tokens. hidden_size, intermediate_size, head_dim: features, those within the MLP,
    and those of a head. num_hidden_layers, num_attention_heads, num_key_value_heads: how many.
    hidden_act: the activation's name. max_position_embeddings: the longest text. initializer_range,
    rms_norm_eps: of first values and norms. rope_theta: the base of the angles. attention_bias,
    mlp_bias: whether these have biases. attention_dropout: in training. tie_word_embeddings: one
    matrix for both ends. bos_token_id, eos_token_id, pad_token_id: special tokens.

    >>> kiln.models.LlamaConfig(hidden_size=64, num_attention_heads=4).hidden_size
    64
    """

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = None  # type: ignore[assignment]  # as many as there are heads
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    initializer_range: float = 0.02
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] = None  # type: ignore[assignment]  # of the other fields
    attention_bias: bool = False
    attention_dropout: float = 0.0
    mlp_bias: bool = False
    head_dim: int = None  # type: ignore[assignment]  # hidden_size over the heads
    tie_word_embeddings: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        self.require_positive(
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "max_position_embeddings",
        )
        self.require_multiple("num_attention_heads", "num_key_value_heads")
        if self.head_dim is None:
            self.require_multiple("hidden_size", "num_attention_heads")
            self.head_dim = self.hidden_size // self.num_attention_heads
        if self.head_dim % 2:
            raise ValueError(f"LlamaConfig: head_dim must be even; got {self.head_dim}")
        rope = {"rope_theta": self.rope_theta, **(self.rope_scaling or {})}
        rope.update(self.rope_parameters or {})
        rope["rope_type"] = rope.get("rope_type", rope.get("type", "default"))
        self.rope_theta = rope["rope_theta"]
        self.rope_parameters = rope


def rope_frequencies(rope: Mapping[str, Any], head_dim: int) -> list[float]:
    """The angle of each pair of features for a step of one position, as the config's
    rope_parameters say (Su et al., 2021; "llama3": the slow ones slower, blended between two wave
    lengths)."""
    frequencies = [rope["rope_theta"] ** (-i / head_dim) for i in range(0, head_dim, 2)]
    kind = rope["rope_type"]
    if kind == "default":
        return frequencies
    if kind == "linear":
        return [f / rope["factor"] for f in frequencies]
    if kind == "factors":
        factors = rope["factors"]
        if len(factors) != len(frequencies) or not all(factor > 0 for factor in factors):
            raise ValueError(f"rope: expected {len(frequencies)} positive factors; got {factors}")
        return [f / factor for f, factor in zip(frequencies, factors)]
    if kind != "llama3":
        raise NotImplementedError(
            f"rope_type: expected 'default', 'linear', 'llama3' or 'factors'; got {kind!r}"
        )
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    context = rope["original_max_position_embeddings"]
    out = []
    for f in frequencies:
        waves = context * f / (2 * math.pi)
        blend = min(1.0, max(0.0, (waves - low) / (high - low)))
        out.append(f * (blend + (1 - blend) / rope["factor"]))
    return out


class RotaryEmbedding(nn.Module):
    """Cosines and sines of positions [N, T] or [T]."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.frequencies = rope_frequencies(config.rope_parameters, config.head_dim)

    def forward(self, position_ids: Tensor, dtype: dtype) -> tuple[Tensor, Tensor]:
        frequencies = kiln.tensor(self.frequencies, dtype=kiln.float32, device=position_ids.device)
        angle = position_ids.float()[..., None] * frequencies
        angle = kiln.cat([angle, angle], dim=-1)
        if angle.dim() == 3:
            angle = angle[:, None]
        return angle.cos().to(dtype), angle.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [N, heads, T, features], each pair (i, i + half) turned by its angle."""
    half = x.shape[-1] // 2
    turned = kiln.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos + turned * sin


class LlamaAttention(nn.Module):
    """Causal self-attention with rotary positions; several heads of queries share one of keys."""

    def __init__(self, config: LlamaConfig, layer: int) -> None:
        super().__init__()
        width, head, bias = config.hidden_size, config.head_dim, config.attention_bias
        self.head_dim = head
        self.layer = layer
        self.dropout = config.attention_dropout
        self.q_proj = nn.Linear(width, config.num_attention_heads * head, bias=bias)
        self.k_proj = nn.Linear(width, config.num_key_value_heads * head, bias=bias)
        self.v_proj = nn.Linear(width, config.num_key_value_heads * head, bias=bias)
        self.o_proj = nn.Linear(config.num_attention_heads * head, width, bias=bias)

    def forward(
        self,
        x: Tensor,
        angles: tuple[Tensor, Tensor],
        mask: Tensor | None,
        is_causal: bool,
        cache: KeyValueCache | None,
    ) -> Tensor:
        n, t, _ = x.shape
        q, k, v = (
            project(x).view(n, t, -1, self.head_dim).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotate(q, *angles), rotate(k, *angles)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)
        y = nn.functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
            enable_gqa=True,
        )
        return self.o_proj(y.transpose(1, 2).reshape(n, t, -1))


class LlamaMLP(nn.Module):
    """Two linear layers, the first of them gated (Shazeer, 2020)."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        sizes = (config.hidden_size, config.intermediate_size)
        self.gate_proj = nn.Linear(*sizes, bias=config.mlp_bias)
        self.up_proj = nn.Linear(*sizes, bias=config.mlp_bias)
        self.down_proj = nn.Linear(sizes[1], sizes[0], bias=config.mlp_bias)
        self.act_fn = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    """Attention and an MLP, each with a norm before and a residual connection."""

    def __init__(self, config: LlamaConfig, layer: int) -> None:
        super().__init__()
        self.self_attn = LlamaAttention(config, layer)
        self.mlp = LlamaMLP(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self,
        x: Tensor,
        angles: tuple[Tensor, Tensor],
        mask: Tensor | None,
        is_causal: bool,
        cache: KeyValueCache | None,
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), angles, mask, is_causal, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(PretrainedModel):
    """Token ids [N, T] -> hidden states [N, T, hidden_size].

    >>> with kiln.device("meta"):
    ...     net = kiln.models.LlamaModel(kiln.models.LlamaConfig(num_hidden_layers=1))
    ...     net(kiln.zeros(1, 5, dtype=kiln.int64)).last_hidden_state.shape
    kiln.Size([1, 5, 4096])
    """

    config_class = LlamaConfig
    base_model_prefix = "model"

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(
            config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id
        )
        self.layers = nn.ModuleList(
            [LlamaDecoderLayer(config, i) for i in range(config.num_hidden_layers)]
        )
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.rotary_emb = RotaryEmbedding(config)
        self.init_normal(config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: KeyValueCache | None = None,
        use_cache: bool = False,
    ) -> Output:
        check_input_ids("Llama", input_ids, self.config.vocab_size)
        past_key_values, past = continued(past_key_values, use_cache)
        t = input_ids.shape[1]
        if position_ids is None:
            position_ids = kiln.arange(past, past + t, device=input_ids.device)
        mask, is_causal = causal_mask(attention_mask, t, past + t, input_ids.device)
        x = self.embed_tokens(input_ids)
        angles = self.rotary_emb(position_ids, x.dtype)
        for layer in self.layers:
            x = layer(x, angles, mask, is_causal, past_key_values)
        return Output(last_hidden_state=self.norm(x), past_key_values=past_key_values)


class LlamaForCausalLM(CausalLM):
    """Token ids [N, T] -> logits [N, T, vocab_size] of next tokens; with labels the loss.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.LlamaForCausalLM(kiln.models.LlamaConfig(num_hidden_layers=1))
    ...     net(kiln.zeros(1, 5, dtype=kiln.int64)).logits.shape
    kiln.Size([1, 5, 32000])
    """

    config_class = LlamaConfig
    base_model_prefix = "model"
    backbone_class = LlamaModel
    embedding = "embed_tokens"

    @classmethod
    def from_gguf(cls, path: StrPath, *, quantized: bool = False, **options: Any) -> Self:
        """The model of a file in llama.cpp's format, in float32 and in eval mode.

        quantized: linear layers keep the file's blocks (Q8_0, Q4_0) as 8 bits a value, a quarter of
        the memory; else they become float32, with the same values. `options` replace fields of the
        configuration.
        """
        values, state = read_llama(path, quantized)
        config = LlamaConfig(**{**values, **options})
        with kiln.device("meta"):
            model = cls(config)
        keep_quantized(model, state)
        model.load_pretrained(state, assign=True)
        return model.eval()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: KeyValueCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
    ) -> Output:
        output = self.model(input_ids, attention_mask, position_ids, past_key_values, use_cache)
        return self.predictions(output, labels, logits_to_keep)


def llama(*, weights: StrPath | None = None, **options: Any) -> LlamaForCausalLM:
    """A Llama, without weights or with those of a folder or file. Options are LlamaConfig's.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.llama(num_hidden_layers=1)
    >>> len(net.model.layers)
    1
    """
    config = LlamaConfig(**options)
    if weights is not None:
        return LlamaForCausalLM.from_pretrained(weights, config)
    return LlamaForCausalLM(config)
