"""Llama from GGUF files: llama.cpp's names and order of rows as Hugging Face's have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import kiln

from .gguf import load_gguf

if TYPE_CHECKING:
    from typing import Any

    from .. import nn
    from .._C import Tensor
    from .._typing import StrPath

_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Frequencies of rotation, which become part of the configuration.
_FREQUENCIES = "rope_freqs.weight"


def read_llama(path: StrPath, quantized: bool = False) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(values of a LlamaConfig, state dict) of a file. quantized: the weights of linear layers stay
    quantized tensors where the file has such."""
    tensors, metadata = load_gguf(path)
    kind = metadata.get("general.architecture")
    if kind != "llama":
        raise NotImplementedError(
            f"from_gguf: expected general.architecture 'llama'; got {kind!r}"
        )
    options = _options(metadata, tensors)
    state = {}
    for name, value in tensors.items():
        if name == _FREQUENCIES:
            continue
        key = _key_of(name)
        keep = quantized and key.endswith(("_proj.weight", "lm_head.weight"))
        if value.is_quantized and not keep:
            value = value.dequantize()
        if value.is_floating_point():
            value = value.to(kiln.float32)
        for part, heads in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
            if f".{part}." in key:
                value = _halves(value, options[heads], name)
        state[key] = value
    return options, state


def keep_quantized(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Makes layers of the quantized tensors of a state dict, which then holds their parts."""
    from kiln.nn.finetuning.quantized import Quantized, replace_weight

    for key in [key for key, value in state.items() if value.is_quantized]:
        tensor = state.pop(key)
        path, _, name = key.rpartition(".")
        held = Quantized.of(tensor, kiln.empty(0, device=tensor.device))
        replace_weight(model.get_submodule(path), name, held)
        for part, value in held.state_dict().items():
            state[f"{key}_quantized.{part}"] = value


def _key_of(name):
    if name in _NAMES:
        return _NAMES[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in _LAYER_NAMES:
        raise NotImplementedError(f"from_gguf: the tensor {name!r} belongs to no Llama")
    return f"model.layers.{match[1]}.{_LAYER_NAMES[match[2]]}.{match[3]}"


def _halves(value, heads, name):
    """Rows of each head: llama.cpp turns neighbours, Hugging Face the halves."""
    if value.shape[0] % (2 * heads):
        raise ValueError(
            f"from_gguf: {name!r} has {value.shape[0]} rows, which {heads} heads do not divide"
        )
    if value.is_quantized:
        # A row has values and scales of its own.
        parts = (kiln.quantized_values(value), kiln.quantized_scales(value))
        values, scales = (_halves(part, heads, name) for part in parts)
        scheme = kiln.quant_scheme(value)
        return kiln.make_quantized(values, scales, tuple(value.shape), **scheme)
    pairs = value.reshape(heads, -1, 2, *value.shape[1:])
    return pairs.transpose(1, 2).reshape(value.shape)


def _options(metadata, tensors):
    def number(name, default=None, kind=int):
        value = metadata.get(name, default)
        if value is None:
            raise ValueError(f"from_gguf: the file lacks the value {name!r}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"from_gguf: {name!r} must be a number; got {value!r}")
        return kind(value)

    if "token_embd.weight" not in tensors:
        raise ValueError("from_gguf: the file lacks the tensor 'token_embd.weight'")
    heads = number("llama.attention.head_count")
    width = number("llama.embedding_length")
    if heads < 1 or width < 1:
        raise ValueError(f"from_gguf: impossible sizes; got {heads} heads of {width} features")
    head = number("llama.attention.key_length", width // heads)
    layers = number("llama.block_count")
    count = sum(name.endswith(".attn_q.weight") for name in tensors)
    if layers != count:
        raise ValueError(f"from_gguf: llama.block_count is {layers}, and there are {count} layers")
    rope = {"rope_theta": number("llama.rope.freq_base", 10000.0, float), "rope_type": "default"}
    scaling = metadata.get("llama.rope.scaling.type", "none")
    if scaling == "linear":
        rope.update(rope_type="linear", factor=number("llama.rope.scaling.factor", kind=float))
    elif scaling != "none":
        raise NotImplementedError(f"from_gguf: rope scaling {scaling!r} is not read")
    if _FREQUENCIES in tensors:
        rope.update(rope_type="factors", factors=tensors[_FREQUENCIES].float().tolist())
    return {
        "vocab_size": tensors["token_embd.weight"].shape[0],
        "hidden_size": width,
        "intermediate_size": number("llama.feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": number("llama.attention.head_count_kv", heads),
        "max_position_embeddings": number("llama.context_length", 2048),
        "rms_norm_eps": number("llama.attention.layer_norm_rms_epsilon", 1e-6, float),
        "rope_parameters": rope,
        "head_dim": head,
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
    }
