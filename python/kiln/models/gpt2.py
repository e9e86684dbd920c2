"""GPT-2 (Radford et al., 2019), with the keys and options of Hugging Face's transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import kiln
from kiln import nn

from ._causal import CausalLM, continued
from ._config import Config, Output
from ._pretrained import (
    PretrainedModel,
    activation,
    causal_mask,
    check_input_ids,
)

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import StrPath
    from ._cache import KeyValueCache


@dataclass
class GPT2Config(Config):
    """Defaults are those of the model with 124 million parameters.

    vocab_size: tokens. n_positions: the longest text. n_embd: features. n_layer, n_head: layers,
    and heads of attention. n_inner: features within the MLP. activation_function: its name.
    resid_pdrop, embd_pdrop, attn_pdrop: dropout. layer_norm_epsilon, initializer_range: of norms
    and first values. scale_attn_weights, scale_attn_by_inverse_layer_idx: of attention's scores.
    tie_word_embeddings: one matrix for both ends. bos_token_id, eos_token_id, pad_token_id: special
    tokens.

    >>> kiln.models.GPT2Config().n_embd
    768
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    tie_word_embeddings: bool = True
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        self.require_positive("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
        self.require_multiple("n_embd", "n_head")


class Conv1D(nn.Module):
    """A linear layer whose weight is [inputs, outputs]."""

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(kiln.empty(nx, nf).normal_(std=0.02))
        self.bias = nn.Parameter(kiln.zeros(nf))

    def forward(self, x: Tensor) -> Tensor:
        y = kiln.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return y.view(*x.shape[:-1], self.nf)


class GPT2Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, config: GPT2Config, layer: int) -> None:
        super().__init__()
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)
        self.resid_dropout = nn.Dropout(config.resid_pdrop)
        self.heads = config.n_head
        self.dropout = config.attn_pdrop
        self.layer = layer
        self.scale = 1.0
        if config.scale_attn_weights:
            self.scale = 1 / math.sqrt(config.n_embd // config.n_head)
        if config.scale_attn_by_inverse_layer_idx:
            self.scale /= layer + 1

    def forward(
        self, x: Tensor, mask: Tensor | None, is_causal: bool, cache: KeyValueCache | None
    ) -> Tensor:
        n, t, width = x.shape
        qkv = self.c_attn(x).view(n, t, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)
        y = nn.functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
            scale=self.scale,
        )
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).reshape(n, t, width)))


class GPT2MLP(nn.Module):
    """Two linear layers."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc = Conv1D(inner, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, inner)
        self.act = activation(config.activation_function)
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class GPT2Block(nn.Module):
    """Attention and an MLP, each with a norm before and a residual connection."""

    def __init__(self, config: GPT2Config, layer: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = GPT2Attention(config, layer)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = GPT2MLP(config)

    def forward(
        self, x: Tensor, mask: Tensor | None, is_causal: bool, cache: KeyValueCache | None
    ) -> Tensor:
        x = x + self.attn(self.ln_1(x), mask, is_causal, cache)
        return x + self.mlp(self.ln_2(x))


class GPT2Model(PretrainedModel):
    """Token ids [N, T] -> hidden states [N, T, n_embd].

    >>> with kiln.device("meta"):
    ...     net = kiln.models.GPT2Model(kiln.models.GPT2Config(n_layer=1))
    ...     net(kiln.zeros(1, 5, dtype=kiln.int64)).last_hidden_state.shape
    kiln.Size([1, 5, 768])
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList([GPT2Block(config, i) for i in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.init_normal(config.initializer_range)
        for block in self.h:  # so that the sum of all layers keeps its size
            for projection in (block.attn.c_proj, block.mlp.c_proj):
                std = config.initializer_range / math.sqrt(2 * config.n_layer)
                nn.init.normal_(projection.weight, 0.0, std)

    def forward(
        self,
        input_ids: Tensor,
        past_key_values: KeyValueCache | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        use_cache: bool = False,
    ) -> Output:
        check_input_ids("GPT2", input_ids, self.config.vocab_size)
        past_key_values, past = continued(past_key_values, use_cache)
        t = input_ids.shape[1]
        if past + t > self.config.n_positions:
            raise ValueError(f"GPT2: at most {self.config.n_positions} positions; got {past + t}")
        if position_ids is None:
            position_ids = kiln.arange(past, past + t, device=input_ids.device)
        mask, is_causal = causal_mask(attention_mask, t, past + t, input_ids.device)
        x = self.drop(self.wte(input_ids) + self.wpe(position_ids))
        for block in self.h:
            x = block(x, mask, is_causal, past_key_values)
        return Output(last_hidden_state=self.ln_f(x), past_key_values=past_key_values)


class GPT2LMHeadModel(CausalLM):
    """Token ids [N, T] -> logits [N, T, vocab_size] of next tokens; with labels the loss.

    >>> config = kiln.models.GPT2Config(vocab_size=10, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    >>> net = kiln.models.GPT2LMHeadModel(config).eval()
    >>> net(kiln.tensor([[1, 2, 3]])).logits.shape
    kiln.Size([1, 3, 10])
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"
    backbone_class = GPT2Model
    embedding = "wte"

    def max_positions(self) -> int:
        return self.config.n_positions

    def forward(
        self,
        input_ids: Tensor,
        past_key_values: KeyValueCache | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
    ) -> Output:
        output = self.transformer(
            input_ids, past_key_values, attention_mask, position_ids, use_cache
        )
        return self.predictions(output, labels, logits_to_keep)


_SIZES = {
    "gpt2": (768, 12, 12),
    "gpt2-medium": (1024, 24, 16),
    "gpt2-large": (1280, 36, 20),
    "gpt2-xl": (1600, 48, 25),
}


def gpt2(size: str = "gpt2", *, weights: StrPath | None = None, **options: Any) -> GPT2LMHeadModel:
    """GPT-2 of a published size ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"), without weights
    or with those of a folder or file. Options are GPT2Config's.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.gpt2("gpt2", n_layer=1)
    >>> len(net.transformer.h)
    1
    """
    if size not in _SIZES:
        raise ValueError(f"gpt2: size must be one of {', '.join(_SIZES)}; got {size!r}")
    width, layers, heads = _SIZES[size]
    config = GPT2Config(**{"n_embd": width, "n_layer": layers, "n_head": heads, **options})
    if weights is not None:
        return GPT2LMHeadModel.from_pretrained(weights, config)
    return GPT2LMHeadModel(config)
