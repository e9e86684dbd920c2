"""kiln.models beside what the reference implementations compute (model_reference.json) and beside
PyTorch running the same source."""

import numpy as np
import pytest

import kiln
import model_reference as reference
from kiln import models

RECORDED = reference.recorded()
CONFIGS = {
    "GPT2LMHeadModel": models.GPT2Config(),
    "LlamaForCausalLM": models.LlamaConfig(),
    "BertModel": models.BertConfig(),
    "BertForMaskedLM": models.BertConfig(),
    "BertForSequenceClassification": models.BertConfig(),
    "WhisperForConditionalGeneration": models.WhisperConfig(),
}


def filled(model):
    return reference.fill(model, kiln.from_numpy)


def check(values, expected):
    assert reference.summary(values.detach().numpy()) == pytest.approx(expected, rel=1e-4, abs=2e-5)


@pytest.mark.parametrize("name", RECORDED["keys"])
def test_keys_and_shapes_of_full_size(name):
    with kiln.device("meta"):
        make = getattr(models, name)
        model = make(CONFIGS[name]) if name in CONFIGS else make()
    assert reference.digest(model.state_dict()) == RECORDED["keys"][name]


@pytest.mark.parametrize("name, options, size", reference.VISION)
def test_vision(name, options, size):
    model = filled(getattr(models, name)(num_classes=5, **options))
    expected = RECORDED["vision"][f"{name} {options}"]
    x = kiln.from_numpy(reference.images(size)).requires_grad_()
    y = model(x)
    check(y, expected["output"])
    y.square().sum().backward()
    scale = max(map(abs, expected["gradient"][:-1]))
    got = np.array(reference.summary(x.grad.numpy()))
    np.testing.assert_allclose(got, expected["gradient"], rtol=2e-4, atol=1e-4 * scale)


def test_vgg_features():
    features = models.vgg.make_features(11, batch_norm=True)
    filled(kiln.nn.ModuleDict({"features": features}))
    y = features(kiln.from_numpy(reference.images(32)))
    check(y, RECORDED["vision"]["vgg11_bn features"]["output"])


def test_vision_transformer():
    model = filled(models.VisionTransformer(**reference.VIT, representation_size=12))
    expected = RECORDED["vision"]["vit"]
    assert reference.digest(model.state_dict()) == expected["keys"]
    check(model(kiln.from_numpy(reference.images(32))), expected["output"])


def test_mlp():
    model = filled(models.mlp(6, [8, 4, 3], norm_layer=kiln.nn.LayerNorm))
    expected = RECORDED["vision"]["mlp"]
    assert reference.digest(model.state_dict()) == expected["keys"]
    check(model(kiln.from_numpy(reference.images(32)[0, 0, :, :6].copy())), expected["output"])


CAUSAL = {
    "gpt2": (models.GPT2LMHeadModel, models.GPT2Config(**reference.GPT2)),
    "gpt2 by layer": (
        models.GPT2LMHeadModel,
        models.GPT2Config(**reference.GPT2, scale_attn_by_inverse_layer_idx=True),
    ),
    "llama": (models.LlamaForCausalLM, models.LlamaConfig(**reference.LLAMA)),
    "llama3": (
        models.LlamaForCausalLM,
        models.LlamaConfig(
            **reference.LLAMA,
            rope_parameters=reference.LLAMA3_ROPE,
            attention_bias=True,
            mlp_bias=True,
            head_dim=12,
            tie_word_embeddings=True,
        ),
    ),
}


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_language_model(name):
    make, config = CAUSAL[name]
    model, expected = filled(make(config)), RECORDED["language"][name]
    ids = kiln.from_numpy(reference.tokens())
    mask = kiln.from_numpy(reference.padding())
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    output = model(ids, attention_mask=mask, position_ids=positions)
    check(output.logits[:, 3:], expected["logits"])
    assert model(ids, labels=ids).loss.item() == pytest.approx(expected["loss"], rel=1e-5)
    options = dict(max_new_tokens=8, pad_token_id=0, eos_token_id=60)
    for use_cache in (True, False):
        options["use_cache"] = use_cache
        written = model.generate(ids, attention_mask=mask, **options)
        written[1, :3] = ids[1, :3]  # what stands at padding is not the model's
        assert written.tolist() == expected["greedy"]
        written = model.generate(ids, repetition_penalty=1.5, **options)
        assert written.tolist() == expected["penalty"]


def test_bert():
    ids = kiln.from_numpy(reference.tokens())
    mask = kiln.from_numpy(reference.padding(left=False))
    types = (kiln.arange(7) > 3).long().expand(2, 7)
    config = models.BertConfig(**reference.BERT)
    expected = RECORDED["language"]
    output = filled(models.BertModel(config))(ids, attention_mask=mask, token_type_ids=types)
    check(output.last_hidden_state[0], expected["bert"]["hidden"])
    check(output.pooler_output, expected["bert"]["pooled"])
    masked = filled(models.BertForMaskedLM(config))
    labels = ids.masked_fill(ids % 3 != 0, -100)
    output = masked(ids, attention_mask=mask, labels=labels)
    check(output.logits[0], expected["bert masked"]["logits"])
    assert output.loss.item() == pytest.approx(expected["bert masked"]["loss"], rel=1e-5)
    classes = filled(models.BertForSequenceClassification(config))
    output = classes(ids, attention_mask=mask, labels=kiln.tensor([1, 0]))
    check(output.logits, expected["bert classes"]["logits"])
    assert output.loss.item() == pytest.approx(expected["bert classes"]["loss"], rel=1e-5)


def test_whisper():
    model = filled(
        models.WhisperForConditionalGeneration(models.WhisperConfig(**reference.WHISPER))
    )
    expected = RECORDED["language"]["whisper"]
    sound = kiln.from_numpy(reference.spectrogram())
    ids = kiln.from_numpy(reference.tokens())
    check(model(sound, decoder_input_ids=ids).logits, expected["logits"])
    assert model(sound, labels=ids).loss.item() == pytest.approx(expected["loss"], rel=1e-5)
    for use_cache in (True, False):
        written = model.generate(sound, max_new_tokens=8, eos_token_id=[], use_cache=use_cache)
        assert written.tolist() == expected["greedy"]
