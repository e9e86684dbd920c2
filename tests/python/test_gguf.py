"""GGUF files: what the package gguf wrote and read (tests/fixtures/make_gguf.py)."""

import pathlib

import numpy as np
import pytest

import kiln
from kiln import models

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "gguf"


def test_tensors_equal_those_of_the_package():
    tensors, metadata = models.load_gguf(FOLDER / "small.gguf")
    with np.load(FOLDER / "small.npz") as expected:
        assert set(tensors) == set(expected.files)
        for name, values in expected.items():
            x = tensors[name]
            if x.is_quantized:
                x = x.dequantize()
            assert tuple(x.shape) == values.shape
            np.testing.assert_array_equal(x.numpy(), values, err_msg=name)
    assert tensors["q8_0"].is_quantized and tensors["q4_0"].is_quantized
    assert not tensors["q8_0 lowest"].is_quantized and not tensors["q4_k"].is_quantized
    assert tensors["q6_k"].dtype == kiln.float32
    assert metadata["general.architecture"] == "llama"
    assert metadata["test.words"] == ["a", "bc", "d\u00e9"]
    assert metadata["test.numbers"] == [1, -2, 3]
    assert (metadata["test.integer"], metadata["test.float"], metadata["test.flag"]) == (
        7,
        0.5,
        True,
    )


def test_load_knows_the_format():
    tensors = kiln.load(FOLDER / "small.gguf")
    with open(FOLDER / "small.gguf", "rb") as file:
        again = kiln.load(file)
    assert list(tensors) == list(again)
    assert kiln.equal(tensors["f16"], again["f16"])
    x = kiln.randn(2, 64)
    weight = tensors["q8_0"]
    y = kiln.nn.functional.linear(x, weight)
    np.testing.assert_allclose(y.numpy(), (x @ weight.dequantize().T).numpy(), atol=1e-4)


def test_bad_files(tmp_path):
    good = (FOLDER / "small.gguf").read_bytes()
    path = tmp_path / "x.gguf"
    path.write_bytes(good[:200])
    with pytest.raises(OSError, match="load_gguf: .*x.gguf"):
        kiln.load(path)
    path.write_bytes(b"GGUF" + b"\xff" * 64)
    with pytest.raises(kiln.errors.IoError, match="version is not read"):
        models.load_gguf(path)
    with pytest.raises(FileNotFoundError):
        models.load_gguf(tmp_path / "none.gguf")


def write_gguf(path, tensors, metadata):
    """As llama.cpp writes a file: arrays in 32 bits, or (type, shape, bytes of its blocks)."""
    import struct

    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        if isinstance(value, str):
            out += text(key) + struct.pack("<I", 8) + text(value)
        elif isinstance(value, float):
            out += text(key) + struct.pack("<If", 6, value)
        else:
            out += text(key) + struct.pack("<II", 4, value)
    data = b""
    for name, value in tensors.items():
        if isinstance(value, np.ndarray):
            value = (0, value.shape, value.astype("<f4").tobytes())
        kind, shape, content = value
        out += text(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack("<Q", size) for size in reversed(shape))
        out += struct.pack("<IQ", kind, len(data))
        data += content
        data += b"\0" * (-len(data) % 32)
    path.write_bytes(out + b"\0" * (-len(out) % 32) + data)


def blocks(value, bits):
    """A matrix as Q8_0 or Q4_0: a half of a scale, and 32 integers in rows or halves of a byte."""
    parts = value.reshape(-1, 32)
    most = 127 if bits == 8 else 7
    scale = (np.abs(parts).max(1, keepdims=True) / most).astype("<f2")
    q = np.clip(np.rint(parts / scale.astype(np.float32)), -most, most).astype(np.int8)
    if bits == 4:
        q = (q + 8).astype(np.uint8)
        q = q[:, :16] | q[:, 16:] << 4
    content = np.concatenate([scale.view(np.uint8), q.view(np.uint8)], axis=1).tobytes()
    return (8 if bits == 8 else 2, value.shape, content)


def llama_file(path, tied=False, bits=32, **changes):
    """A small Llama as llama.cpp's conversion lays it out, and the model that it came from."""
    kiln.manual_seed(0)
    model = models.llama(
        vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=500.0,
        tie_word_embeddings=tied,
    ).eval()  # fmt: skip
    names = {
        "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
        "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "model.layers": "blk",
    }  # fmt: skip
    tensors = {}
    for key, value in model.state_dict().items():
        if tied and key == "lm_head.weight":
            continue
        name, value = key, value.numpy()
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        for part, heads in (("attn_q.", 4), ("attn_k.", 2)):
            if part in name:  # the conversion script's permutation
                rows = value.shape[0]
                value = value.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(rows, -1)
        blocked = bits < 32 and value.ndim == 2 and value.shape[1] % 32 == 0
        tensors[name] = blocks(value, bits) if blocked else value
    metadata = {
        "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 32,
        "llama.feed_forward_length": 48, "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2, "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 500.0, "llama.context_length": 64,
        "tokenizer.ggml.eos_token_id": 7, **changes,
    }  # fmt: skip
    tensors.update(metadata.pop("tensors", {}))
    metadata = {key: value for key, value in metadata.items() if value is not None}
    write_gguf(path, tensors, metadata)
    return model


@pytest.mark.parametrize("tied", [False, True])
def test_llama_from_a_file(tmp_path, tied):
    model = llama_file(tmp_path / "m.gguf", tied)
    again = models.LlamaForCausalLM.from_gguf(tmp_path / "m.gguf")
    assert again.config.eos_token_id == 7 and again.config.tie_word_embeddings == tied
    for key, value in model.state_dict().items():
        assert kiln.equal(again.state_dict()[key], value), key
    ids = kiln.tensor([[1, 5, 9, 30]])
    assert kiln.equal(again(ids).logits, model(ids).logits)
    # Twice as slow as the file's own frequencies.
    slow = np.full(4, 2.0, np.float32)
    llama_file(tmp_path / "slow.gguf", tied, tensors={"rope_freqs.weight": slow})
    slow = models.LlamaForCausalLM.from_gguf(tmp_path / "slow.gguf")
    positions = kiln.arange(0, 8, 2)[None] / 2
    assert kiln.allclose(slow(ids).logits, model(ids, position_ids=positions / 2).logits, atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("bits", [8, 4])
def test_llama_in_the_blocks_of_the_file(tmp_path, bits, tied):
    original = llama_file(tmp_path / "m.gguf", tied, bits)
    plain = models.LlamaForCausalLM.from_gguf(tmp_path / "m.gguf")
    small = models.LlamaForCausalLM.from_gguf(tmp_path / "m.gguf", quantized=True)
    layer = small.model.layers[0]
    assert "Quantized(8 bits, shape=[32, 32], scale per block of 32)" in str(layer.self_attn.q_proj)
    assert layer.self_attn.q_proj.weight_quantized.nbytes() == 32 * 32 + 32 * 4
    assert layer.mlp.down_proj.weight.dtype == kiln.float32  # rows of 48 are no whole blocks
    assert not small.model.embed_tokens.weight.is_quantized
    for part in ("self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj"):
        mine, theirs = (m.model.layers[1].get_submodule(part).weight for m in (small, plain))
        assert kiln.equal(mine, theirs), part
        near = original.model.layers[1].get_submodule(part).weight
        assert (theirs - near).abs().max() < near.abs().max() / (120 if bits == 8 else 6)
    ids = kiln.tensor([[1, 5, 9, 30]])
    assert kiln.allclose(small(ids).logits, plain(ids).logits, atol=1e-5)
    assert small.generate(ids, max_new_tokens=4).tolist() == plain.generate(ids, max_new_tokens=4).tolist()
    # Its state dict loads into another of the kind.
    again = models.LlamaForCausalLM.from_gguf(tmp_path / "m.gguf", quantized=True)
    again.load_state_dict(small.state_dict())


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"general.architecture": "mamba"}, "expected general.architecture 'llama'"),
        ({"llama.block_count": 3}, "there are 2 layers"),
        ({"llama.embedding_length": None}, "lacks the value 'llama.embedding_length'"),
        ({"llama.embedding_length": "x"}, "must be a number"),
        ({"llama.attention.head_count": 0}, "impossible sizes"),
        ({"llama.attention.head_count_kv": 3}, "heads do not divide"),
        ({"llama.rope.scaling.type": "yarn"}, "rope scaling 'yarn' is not read"),
        ({"tensors": {"blk.0.magic.weight": np.zeros(3, np.float32)}}, "belongs to no Llama"),
    ],
)
def test_a_file_that_is_no_llama(tmp_path, changes, message):
    llama_file(tmp_path / "m.gguf", **changes)
    with pytest.raises((ValueError, NotImplementedError), match=message):
        models.LlamaForCausalLM.from_gguf(tmp_path / "m.gguf")
