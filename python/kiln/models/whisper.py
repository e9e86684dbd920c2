"""Whisper (Radford et al., 2022), with the keys and options of Hugging Face's transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import kiln
from kiln import nn

from ._cache import KeyValueCache
from ._config import Config, Output
from ._pretrained import PretrainedModel, activation, causal_mask, check_input_ids
from .generation import GenerationMixin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .._C import Tensor
    from .._typing import StrPath


@dataclass
class WhisperConfig(Config):
    """Defaults are those of the tiny model.

    vocab_size: tokens. num_mel_bins: of the spectrogram. d_model: features; encoder_ffn_dim,
    decoder_ffn_dim: those within the MLPs. encoder_layers, encoder_attention_heads, decoder_layers,
    decoder_attention_heads: how many. activation_function: its name. dropout, attention_dropout,
    activation_dropout: in training. init_std: of first values. scale_embedding: by sqrt(d_model).
    max_source_positions, max_target_positions: the longest sound and text. pad_token_id,
    bos_token_id, eos_token_id, decoder_start_token_id: special tokens.

    >>> kiln.models.WhisperConfig().d_model
    384
    """

    vocab_size: int = 51865
    num_mel_bins: int = 80
    encoder_layers: int = 4
    encoder_attention_heads: int = 6
    decoder_layers: int = 4
    decoder_attention_heads: int = 6
    encoder_ffn_dim: int = 1536
    decoder_ffn_dim: int = 1536
    d_model: int = 384
    activation_function: str = "gelu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    scale_embedding: bool = False
    max_source_positions: int = 1500
    max_target_positions: int = 448
    pad_token_id: int | None = 50256
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    decoder_start_token_id: int = 50257

    def __post_init__(self) -> None:
        self.require_positive(
            "vocab_size",
            "num_mel_bins",
            "encoder_layers",
            "encoder_attention_heads",
            "decoder_layers",
            "decoder_attention_heads",
            "encoder_ffn_dim",
            "decoder_ffn_dim",
            "d_model",
            "max_source_positions",
            "max_target_positions",
        )
        self.require_multiple("d_model", "encoder_attention_heads")
        self.require_multiple("d_model", "decoder_attention_heads")


def sinusoids(length: int, channels: int) -> Tensor:
    """Positions as sines, then cosines, of channels / 2 frequencies: [length, channels]."""
    half = channels // 2
    step = math.log(10000) / max(1, half - 1)
    frequency = (kiln.arange(half, dtype=kiln.float32) * -step).exp()
    angle = kiln.arange(length, dtype=kiln.float32)[:, None] * frequency[None]
    return kiln.cat([angle.sin(), angle.cos()], dim=1)


class WhisperAttention(nn.Module):
    """Attention to the same states or, with `memory`, to the encoder's."""

    def __init__(self, width: int, heads: int, dropout: float, layer: int = 0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.layer = layer
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def _split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        q = self._split(self.q_proj(x))
        if memory is not None and cache is not None and cache.get_seq_length(self.layer) > 0:
            k, v = cache.layer(self.layer)
        else:
            source = x if memory is None else memory
            k, v = self._split(self.k_proj(source)), self._split(self.v_proj(source))
            if cache is not None:
                k, v = cache.update(self.layer, k, v)
        y = nn.functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
        )
        return self.out_proj(y.transpose(1, 2).reshape(x.shape))


class WhisperLayer(nn.Module):
    """Self-attention, in the decoder attention to the encoder, and an MLP; norms before each."""

    def __init__(self, config: WhisperConfig, layer: int, decoder: bool) -> None:
        super().__init__()
        side = "decoder" if decoder else "encoder"
        width = config.d_model
        heads = getattr(config, f"{side}_attention_heads")
        inner = getattr(config, f"{side}_ffn_dim")
        self.self_attn = WhisperAttention(width, heads, config.attention_dropout, layer)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.encoder_attn = None
        if decoder:
            self.encoder_attn = WhisperAttention(width, heads, config.attention_dropout, layer)
            self.encoder_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width)
        self.act = activation(config.activation_function)
        self.dropout = nn.Dropout(config.dropout)
        self.activation_dropout = nn.Dropout(config.activation_dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        is_causal: bool = False,
        caches: tuple[KeyValueCache | None, KeyValueCache | None] = (None, None),
    ) -> Tensor:
        y = self.self_attn(self.self_attn_layer_norm(x), None, mask, is_causal, caches[0])
        x = x + self.dropout(y)
        if self.encoder_attn is not None:
            y = self.encoder_attn(self.encoder_attn_layer_norm(x), memory, cache=caches[1])
            x = x + self.dropout(y)
        y = self.activation_dropout(self.act(self.fc1(self.final_layer_norm(x))))
        return x + self.dropout(self.fc2(y))


class WhisperEncoder(nn.Module):
    """Mel spectrograms [N, num_mel_bins, 2 max_source_positions] -> [N, max_source_positions,
    d_model]."""

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__()
        width = config.d_model
        self.conv1 = nn.Conv1d(config.num_mel_bins, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(config.max_source_positions, width)
        self.embed_positions.requires_grad_(False)
        self.layers = nn.ModuleList(
            [WhisperLayer(config, i, False) for i in range(config.encoder_layers)]
        )
        self.layer_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.dropout)
        self.shape = (config.num_mel_bins, 2 * config.max_source_positions)

    def forward(self, input_features: Tensor) -> Tensor:
        if tuple(input_features.shape[1:]) != self.shape:
            raise ValueError(
                f"Whisper: input_features must be [N, {self.shape[0]}, {self.shape[1]}]; got "
                f"{tuple(input_features.shape)}"
            )
        x = nn.functional.gelu(self.conv1(input_features))
        x = nn.functional.gelu(self.conv2(x)).transpose(1, 2)
        x = self.dropout(x + self.embed_positions.weight)
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class WhisperDecoder(nn.Module):
    """Token ids [N, T] and the encoder's states -> [N, T, d_model]."""

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__()
        width = config.d_model
        self.embed_tokens = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.embed_positions = nn.Embedding(config.max_target_positions, width)
        self.layers = nn.ModuleList(
            [WhisperLayer(config, i, True) for i in range(config.decoder_layers)]
        )
        self.layer_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.dropout)
        self.max_positions = config.max_target_positions
        self.vocab_size = config.vocab_size
        self.scale = math.sqrt(width) if config.scale_embedding else 1.0

    def forward(
        self,
        ids: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        caches: tuple[KeyValueCache | None, KeyValueCache | None] = (None, None),
    ) -> Tensor:
        check_input_ids("Whisper", ids, self.vocab_size)
        past = 0 if caches[0] is None else caches[0].get_seq_length()
        t = ids.shape[1]
        if past + t > self.max_positions:
            raise ValueError(f"Whisper: at most {self.max_positions} positions; got {past + t}")
        if position_ids is None:
            position_ids = kiln.arange(past, past + t, device=ids.device)
        mask, is_causal = causal_mask(attention_mask, t, past + t, ids.device)
        x = self.embed_tokens(ids) * self.scale + self.embed_positions(position_ids)
        x = self.dropout(x)
        for layer in self.layers:
            x = layer(x, memory, mask, is_causal, caches)
        return self.layer_norm(x)


class WhisperModel(PretrainedModel):
    """The encoder and the decoder.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.WhisperModel(kiln.models.WhisperConfig())
    ...     sound, tokens = kiln.zeros(1, 80, 3000), kiln.zeros(1, 4, dtype=kiln.int64)
    ...     net(sound, tokens).last_hidden_state.shape
    kiln.Size([1, 4, 384])
    """

    config_class = WhisperConfig
    base_model_prefix = "model"

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__(config)
        self.encoder = WhisperEncoder(config)
        self.decoder = WhisperDecoder(config)
        self.init_normal(config.init_std)
        with kiln.no_grad():
            self.encoder.embed_positions.weight.copy_(
                sinusoids(config.max_source_positions, config.d_model)
            )

    def forward(
        self,
        input_features: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_position_ids: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        use_cache: bool = False,
    ) -> Output:
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_features)
        if use_cache and past_key_values is None:
            past_key_values = (KeyValueCache(), KeyValueCache())
        hidden = self.decoder(
            decoder_input_ids,
            encoder_outputs,
            decoder_attention_mask,
            decoder_position_ids,
            past_key_values or (None, None),
        )
        return Output(
            last_hidden_state=hidden,
            past_key_values=past_key_values,
            encoder_last_hidden_state=encoder_outputs,
        )


class WhisperForConditionalGeneration(GenerationMixin, PretrainedModel):
    """Mel spectrograms and token ids [N, T] -> logits [N, T, vocab_size]. labels give the loss,
    and, shifted by one, the token ids where none are given.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.WhisperForConditionalGeneration(kiln.models.WhisperConfig())
    ...     sound, tokens = kiln.zeros(1, 80, 3000), kiln.zeros(1, 4, dtype=kiln.int64)
    ...     net(sound, tokens).logits.shape
    kiln.Size([1, 4, 51865])
    """

    config_class = WhisperConfig
    base_model_prefix = "model"

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__(config)
        self.model = WhisperModel(config)
        self.proj_out = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.tie_weights()

    def tied_keys(self) -> dict[str, str]:
        return {"proj_out.weight": "model.decoder.embed_tokens.weight"}

    def tie_weights(self) -> None:
        self.proj_out.weight = self.model.decoder.embed_tokens.weight

    def max_positions(self) -> int:
        return self.config.max_target_positions

    def forward(
        self,
        input_features: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_position_ids: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
    ) -> Output:
        if labels is not None and decoder_input_ids is None:
            start = kiln.full_like(labels[:, :1], self.config.decoder_start_token_id)
            before = labels[:, :-1].masked_fill(labels[:, :-1] == -100, self.config.pad_token_id)
            decoder_input_ids = kiln.cat([start, before], dim=1)
        output = self.model(
            input_features,
            decoder_input_ids,
            decoder_attention_mask,
            decoder_position_ids,
            encoder_outputs,
            past_key_values,
            use_cache,
        )
        logits = self.proj_out(output.last_hidden_state)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Output(
            loss=loss,
            logits=logits,
            past_key_values=output.past_key_values,
            encoder_last_hidden_state=output.encoder_last_hidden_state,
        )

    def generate(  # type: ignore[override]
        self, input_features: Any, decoder_input_ids: Tensor | None = None, **options: Any
    ) -> Tensor:
        """Token ids for each spectrogram, from decoder_input_ids (by default the start token) on.
        Options are those of GenerationMixin.generate."""
        prompt, options = self._prompt(input_features, decoder_input_ids, options)
        return super().generate(prompt, **options)

    def generate_stream(  # type: ignore[override]
        self, input_features: Any, decoder_input_ids: Tensor | None = None, **options: Any
    ) -> Iterator[Tensor]:
        """As generate, one step's tokens [N] after the other."""
        prompt, options = self._prompt(input_features, decoder_input_ids, options)
        return super().generate_stream(prompt, **options)

    def _prompt(self, input_features, decoder_input_ids, options):
        if decoder_input_ids is None:
            start = self.config.decoder_start_token_id
            decoder_input_ids = kiln.full((input_features.shape[0], 1), start, dtype=kiln.int64)
        return decoder_input_ids, {"input_features": input_features, **options}

    def _generation_start(self, inputs):
        with kiln.no_grad():
            return {"encoder_outputs": self.model.encoder(inputs["input_features"])}

    def _generation_step(self, ids, mask, positions, cache, use_cache, inputs):
        output = self(
            decoder_input_ids=ids,
            decoder_attention_mask=mask,
            decoder_position_ids=positions,
            encoder_outputs=inputs["encoder_outputs"],
            past_key_values=cache,
            use_cache=use_cache,
        )
        return output.logits[:, -1], output.past_key_values


def whisper(*, weights: StrPath | None = None, **options: Any) -> WhisperForConditionalGeneration:
    """A Whisper, without weights or with those of a folder or file. Options are WhisperConfig's.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.whisper()
    >>> net.config.d_model
    384
    """
    config = WhisperConfig(**options)
    if weights is not None:
        return WhisperForConditionalGeneration.from_pretrained(weights, config)
    return WhisperForConditionalGeneration(config)
