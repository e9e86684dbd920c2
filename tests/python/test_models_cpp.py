"""The C++ models beside the Python ones: equal keys, shapes and order, and, with the same weights from a
safetensors file, equal outputs and generated tokens. (tests/peer/models.cpp)"""

import os
import pathlib
import subprocess

import numpy as np
import pytest

import kiln
import model_reference as reference
from kiln import models

PROGRAM = os.environ.get("KILN_MODEL_PEER") or str(
    pathlib.Path(kiln.__file__).parents[2] / "tests" / "kiln_model_peer"
)
IDS = kiln.from_numpy(reference.tokens())
MASK = kiln.from_numpy(reference.padding())
RIGHT = kiln.from_numpy(reference.padding(left=False))
TYPES = (kiln.arange(7) > 3).long().expand(2, 7).contiguous()
PROMPTS = [[5, 6, 7, 8, 9], [10], [11, 12, 13]]


def images(size=32):
    return [kiln.from_numpy(reference.images(size))]


def only(model, *inputs):
    return [model(*inputs)]


def causal(model, ids, mask):
    options = dict(max_new_tokens=7, repetition_penalty=1.2, eos_token_id=[33, 44], pad_token_id=0)
    written = model.generate(PROMPTS, **options)
    return [model(ids, attention_mask=mask).logits, written, written]


def vae(model, x):
    output = model(x)
    return [output[0], models.vae_loss(output[0], x, *output[1:], beta=0.5)]


def bert(model, ids, mask, types):
    output = model(ids, attention_mask=mask, token_type_ids=types)
    return [output.last_hidden_state[0], output.pooler_output]


def logits(model, ids):
    return [model(ids).logits]


def whisper(model, sound, ids):
    written = model.generate(sound, max_new_tokens=6, eos_token_id=[], pad_token_id=0)
    return [model(sound, ids).logits, written, written]


def llama(**options):
    return models.LlamaForCausalLM(models.LlamaConfig(**reference.LLAMA, **options))


LLAMA3 = dict(
    rope_parameters=reference.LLAMA3_ROPE,
    attention_bias=True,
    mlp_bias=True,
    head_dim=12,
    tie_word_embeddings=True,
)
DDPM = dict(ch=8, ch_mult=(1, 2), num_res_blocks=1, attn_resolutions=(8,), resolution=16)
SMALL = dict(dilated=True, reduced_tail=True, width_mult=0.5)
BERT = models.BertConfig(**reference.BERT)
# name: (the Python model, its inputs, what it gives)
RUNS = {
    "resnet18": (lambda: models.resnet18(num_classes=5), images(48), only),
    "resnet50": (
        lambda: models.resnet50(num_classes=5, replace_stride_with_dilation=[False, True, True]),
        images(),
        only,
    ),
    "resnext50_32x4d": (lambda: models.resnext50_32x4d(num_classes=5), images(), only),
    "vgg features": (lambda: models.vgg.make_features(11, True), images(), only),
    "mobilenet_v3_small": (
        lambda: models.mobilenet_v3_small(num_classes=5, **SMALL),
        images(40),
        only,
    ),
    "mobilenet_v3_large": (lambda: models.mobilenet_v3_large(num_classes=5), images(48), only),
    "efficientnet_b0": (lambda: models.efficientnet_b0(num_classes=5), images(48), only),
    "convnext_atto": (lambda: models.convnext_atto(num_classes=5), images(), only),
    "vit": (
        lambda: models.VisionTransformer(**reference.VIT, representation_size=12),
        images(),
        only,
    ),
    "mlp": (lambda: models.mlp(5, [8, 3]), [kiln.randn(4, 5)], only),
    "lenet": (lambda: models.lenet(), [kiln.randn(2, 1, 28, 28)], only),
    "dqn": (lambda: models.DQN(4, 2, hidden=8), [kiln.randn(5, 4)], only),
    "dqn, dueling": (
        lambda: models.DQN(4, 2, hidden=8, dueling=True),
        [kiln.randn(5, 4)],
        only,
    ),
    "atari": (
        lambda: models.AtariDQN(6),
        [kiln.randint(0, 256, (2, 4, 84, 84), dtype=kiln.uint8)],
        only,
    ),
    "unet": (lambda: models.unet(base_channels=4), [kiln.randn(2, 3, 35, 38)], only),
    "unet, bilinear": (
        lambda: models.unet(base_channels=4, bilinear=True),
        [kiln.randn(1, 3, 32, 18)],
        only,
    ),
    "generator": (lambda: models.Generator(nz=6, ngf=4), [kiln.randn(3, 6, 1, 1)], only),
    "discriminator": (lambda: models.Discriminator(ndf=4), [kiln.randn(3, 3, 64, 64)], only),
    "vae": (lambda: models.VAE(20, 16, 3), [kiln.rand(3, 20)], vae),
    "ddpm": (
        lambda: models.DDPMUNet(**DDPM),
        [kiln.randn(2, 3, 16, 16), kiln.tensor([3, 40])],
        only,
    ),
    "lstm": (lambda: models.LSTMLanguageModel(61, 8, 12, 2), [IDS], logits),
    "gpt2": (
        lambda: models.GPT2LMHeadModel(models.GPT2Config(**reference.GPT2)),
        [IDS, MASK],
        causal,
    ),
    "llama": (llama, [IDS, MASK], causal),
    "llama3": (lambda: llama(**LLAMA3), [IDS, MASK], causal),
    "bert": (lambda: models.BertModel(BERT), [IDS, RIGHT, TYPES], bert),
    "bert masked": (lambda: models.BertForMaskedLM(BERT), [IDS], logits),
    "bert classes": (lambda: models.BertForSequenceClassification(BERT), [IDS], logits),
    "whisper": (
        lambda: models.whisper(**reference.WHISPER),
        [kiln.from_numpy(reference.spectrogram()), IDS],
        whisper,
    ),
}


def output_of(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_run_is_here():
    names = [line.partition(" ")[2] for line in output_of("names") if line.startswith("run ")]
    assert sorted(names) == sorted(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_outputs(name, tmp_path):
    make, inputs, outputs = RUNS[name]
    model = reference.fill(make(), kiln.from_numpy)
    state = model.state_dict()
    tensors = {f"w/{key}": value.clone() for key, value in state.items()}
    tensors |= {f"in{i}": value for i, value in enumerate(inputs)}
    kiln.save(tensors, tmp_path / "in.safetensors")
    lines = output_of("run", name, tmp_path / "in.safetensors", tmp_path / "out.safetensors")
    assert lines == [f"{key} {list(value.shape)}" for key, value in state.items()]
    with kiln.no_grad():
        expected = outputs(model, *inputs)
    got = kiln.load(tmp_path / "out.safetensors")
    assert len(got) == len(expected)
    for i, value in enumerate(expected):
        scale = max(1.0, abs(value.numpy()).max()) if value.is_floating_point() else 0.0
        np.testing.assert_allclose(
            got[f"out{i}"].numpy(), value.numpy(), rtol=1e-5, atol=1e-5 * scale
        )


@pytest.mark.parametrize(
    "name", [line.split()[1] for line in output_of("names") if line.startswith("keys ")]
)
def test_keys_of_full_size(name):
    with kiln.device("meta"):
        model = getattr(models, name)()
    expected = [f"{key} {list(p.shape)}" for key, p in model.named_parameters()]
    assert output_of("keys", name) == expected
