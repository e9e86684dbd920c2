"""What models of the reference implementations compute, and how tests compare with it.

Weights are drawn from their names, so that neither side needs a file of the other's.
"""

import hashlib
import json
import math
import pathlib
import zlib

import numpy as np

FILE = pathlib.Path(__file__).parent / "model_reference.json"
GPT2 = dict(vocab_size=61, n_positions=32, n_embd=32, n_layer=2, n_head=4)
LLAMA = dict(
    vocab_size=61,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
BERT = dict(
    vocab_size=61,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=32,
)
WHISPER = dict(
    vocab_size=61,
    num_mel_bins=8,
    encoder_layers=2,
    encoder_attention_heads=4,
    decoder_layers=2,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=40,
    d_model=32,
    max_source_positions=12,
    max_target_positions=24,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=3,
)
VIT = dict(
    image_size=32,
    patch_size=8,
    num_layers=2,
    num_heads=4,
    hidden_dim=32,
    mlp_dim=48,
    num_classes=5,
)
# (name in torchvision.models and kiln.models, options, size of the images)
VISION = [
    ("resnet18", {}, 48),
    ("resnet50", {"replace_stride_with_dilation": [False, True, True]}, 40),
    ("resnext50_32x4d", {}, 32),
    ("mobilenet_v3_small", {}, 48),
    ("mobilenet_v3_small", {"dilated": True, "reduced_tail": True, "width_mult": 0.5}, 40),
    ("mobilenet_v3_large", {"width_mult": 0.35}, 48),
    ("efficientnet_b0", {}, 48),
    ("efficientnet_b5", {}, 32),
    ("convnext_tiny", {}, 40),
]
# Names whose keys, shapes and order are compared at full size.
FULL_SIZE = """
    resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d wide_resnet50_2 vgg11
    vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn mobilenet_v3_small mobilenet_v3_large
    efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4
    efficientnet_b5 efficientnet_b6 efficientnet_b7 convnext_tiny convnext_small convnext_base
    convnext_large vit_b_16 vit_b_32 vit_l_16 vit_l_32 vit_h_14
""".split()


def values_of(name, shape):
    """What the parameter or buffer of this name holds: of a size that keeps outputs near 1."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, np.int64)
    if name.endswith("running_var"):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    if name.endswith("layer_scale"):
        return rng.uniform(0.1, 0.5, shape).astype(np.float32)
    noise = rng.standard_normal(shape)
    if len(shape) > 1:
        return (noise / math.sqrt(max(1, math.prod(shape[1:])))).astype(np.float32)
    return (noise * 0.1 + ("weight" in name)).astype(np.float32)


def fill(model, from_numpy):
    """Gives every parameter and buffer its values; a tied one once."""
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if "." in name and name.rsplit(".", 1)[-1] in (
            "inv_freq",
            "original_inv_freq",
            "position_ids",
        ):
            continue
        tensor.data.copy_(from_numpy(values_of(name, tuple(tensor.shape))))
    return model.eval()


def images(size, count=2):
    rng = np.random.default_rng(size)
    return rng.standard_normal((count, 3, size, size)).astype(np.float32)


def tokens(rows=2, length=7, vocab=61, seed=5):
    return np.random.default_rng(seed).integers(4, vocab, (rows, length))


def padding(rows=2, length=7, left=True):
    """A mask under which the second row is three shorter."""
    mask = np.ones((rows, length), np.int64)
    if left:
        mask[1, :3] = 0
    else:
        mask[1, -3:] = 0
    return mask


def spectrogram():
    return np.random.default_rng(9).standard_normal((2, 8, 24)).astype(np.float32)


def summary(values):
    """At most 40 of the values, and the root of their squares' sum."""
    flat = np.asarray(values, np.float64).ravel()
    step = max(1, len(flat) // 40)
    return [round(float(x), 6) for x in (*flat[::step][:40], np.sqrt((flat**2).sum()))]


def digest(state):
    """Of keys, shapes and their order."""
    lines = "\n".join(f"{name} {tuple(tensor.shape)}" for name, tensor in state.items())
    return [len(state), hashlib.sha256(lines.encode()).hexdigest()[:16]]


def recorded():
    return json.loads(FILE.read_text())
