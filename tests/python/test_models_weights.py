"""Weights from files and folders, configurations, and what models refuse."""

import json

import pytest

import kiln
import model_reference as reference
from kiln import models


def test_weights_option(tmp_path):
    net = models.lenet(num_classes=3)
    kiln.save(net.state_dict(), tmp_path / "net.safetensors")
    x = kiln.randn(2, 1, 32, 32)
    for weights in (tmp_path / "net.safetensors", net.state_dict()):
        again = models.lenet(num_classes=3, weights=weights)
        assert kiln.equal(again(x), net(x))
    with pytest.raises(RuntimeError, match="fc3"):
        models.lenet(num_classes=4, weights=net.state_dict())
    with pytest.raises(TypeError, match="state dict or the name of a file"):
        models.lenet(weights=3)


def folder_of(path, model, state, config, shards=0):
    path.mkdir()
    (path / "config.json").write_text(json.dumps({**config, "model_type": "any", "extra": [1]}))
    kiln.save(state, path / "model.safetensors", max_shard_size=shards)
    return path


def test_gpt2_as_it_is_published(tmp_path):
    """Without the prefix and the tied head, and with buffers that are no weights."""
    model = reference.fill(
        models.GPT2LMHeadModel(models.GPT2Config(**reference.GPT2)), kiln.from_numpy
    )
    state = {k.removeprefix("transformer."): v for k, v in model.state_dict().items()}
    del state["lm_head.weight"]
    state["h.0.attn.bias"] = kiln.ones(1, 1, 8, 8)
    folder = folder_of(tmp_path / "gpt2", model, state, reference.GPT2)
    again = models.GPT2LMHeadModel.from_pretrained(folder)
    ids = kiln.from_numpy(reference.tokens())
    assert kiln.equal(again(ids).logits, model(ids).logits)
    assert again.lm_head.weight is again.transformer.wte.weight and not again.training
    assert not any(p.is_meta for p in [*again.parameters(), *again.buffers()])
    base = models.GPT2Model.from_pretrained(folder, resid_pdrop=0.5)
    assert base.config.resid_pdrop == 0.5 and base.h[0].mlp.dropout.p == 0.5
    named = models.gpt2(weights=folder / "model.safetensors", **reference.GPT2)
    assert kiln.equal(named(ids).logits, model(ids).logits)
    del state["ln_f.bias"]
    kiln.save(state, folder / "model.safetensors")
    with pytest.raises(RuntimeError, match="transformer.ln_f.bias"):
        models.GPT2LMHeadModel.from_pretrained(folder)


@pytest.mark.parametrize("tie", [False, True])
def test_llama_in_shards(tmp_path, tie):
    config = {**reference.LLAMA, "tie_word_embeddings": tie}
    model = reference.fill(models.LlamaForCausalLM(models.LlamaConfig(**config)), kiln.from_numpy)
    state = model.state_dict()
    if tie:
        del state["lm_head.weight"]
    folder = folder_of(tmp_path / "llama", model, state, config, shards=20000)
    assert (folder / "model.safetensors.index.json").exists()
    again = models.LlamaForCausalLM.from_pretrained(folder)
    assert (again.lm_head.weight is again.model.embed_tokens.weight) == tie
    out = again.generate([[1, 2, 3], [4]], max_new_tokens=4)
    assert kiln.equal(out, model.generate([[1, 2, 3], [4]], max_new_tokens=4))


def test_bert_of_old_names_and_another_head(tmp_path):
    config = models.BertConfig(**reference.BERT)
    model = reference.fill(models.BertForMaskedLM(config), kiln.from_numpy)
    state = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): x
        for key, x in model.state_dict().items()
        if "decoder" not in key
    }
    state["bert.embeddings.position_ids"] = kiln.arange(32)[None]
    folder = folder_of(tmp_path / "bert", model, state, reference.BERT)
    ids = kiln.from_numpy(reference.tokens())
    again = models.BertForMaskedLM.from_pretrained(folder)
    assert kiln.equal(again(ids).logits, model(ids).logits)
    with pytest.raises(RuntimeError, match="classifier.weight"):
        models.BertForSequenceClassification.from_pretrained(folder)


def test_whisper_from_a_folder(tmp_path):
    config = models.WhisperConfig(**reference.WHISPER)
    model = reference.fill(models.WhisperForConditionalGeneration(config), kiln.from_numpy)
    state = model.state_dict()
    del state["proj_out.weight"]
    folder = folder_of(tmp_path / "whisper", model, state, reference.WHISPER)
    again = models.WhisperForConditionalGeneration.from_pretrained(folder)
    sound = kiln.from_numpy(reference.spectrogram())
    prompt = kiln.tensor([[3, 7], [3, 8]])
    out = again.generate(sound, prompt, max_new_tokens=5)
    assert kiln.equal(out, model.generate(sound, prompt, max_new_tokens=5))
    assert kiln.equal(out[:, :2], prompt)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="model.safetensors"):
        models.GPT2Model.from_pretrained(tmp_path)
    kiln.save({"x": kiln.ones(1)}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="needs config"):
        models.GPT2Model.from_pretrained(tmp_path / "x.safetensors")


def test_configurations():
    config = models.LlamaConfig(hidden_size=64, num_attention_heads=4)
    assert config.num_key_value_heads == 4 and config.head_dim == 16
    assert models.LlamaConfig.from_dict(config.to_dict()) == config
    old = models.LlamaConfig(
        rope_theta=5e5, rope_scaling={"type": "linear", "factor": 2.0}, num_attention_heads=4
    )
    assert old.rope_parameters == {
        "rope_theta": 5e5,
        "type": "linear",
        "rope_type": "linear",
        "factor": 2.0,
    }


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: models.resnet18(num_classes=0), "num_classes must be an int of at least 1"),
        (lambda: models.resnet18(groups=2), "groups must be 1"),
        (lambda: models.ResNet(models.BasicBlock, [1, 1]), "layers must have 4 numbers"),
        (lambda: models.resnet50(replace_stride_with_dilation=[True]), "must have 3 entries"),
        (lambda: models.MobileNetV3("huge"), "arch must be"),
        (lambda: models.mobilenet_v3_small(width_mult=0), "width_mult must be above 0"),
        (lambda: models.EfficientNet(depth_mult=-1), "must be above 0"),
        (lambda: models.ConvNeXt([1], [2, 3]), "one number for each stage"),
        (lambda: models.convnext_atto(stochastic_depth_prob=2.0), "p must be from 0 to 1"),
        (lambda: models.vgg.make_features(12), "depth must be one of"),
        (lambda: models.vit_tiny_16(patch_size=15), "multiple of patch_size"),
        (lambda: models.MLP(3, []), "at least one width"),
        (lambda: models.UNet(0, 1), "n_channels"),
        (lambda: models.DDPMUNet(resolution=30), "resolution must be a multiple"),
        (lambda: models.GaussianDiffusion(beta_schedule="x"), "beta_schedule must be"),
        (lambda: models.DQN(4, 0), "n_actions"),
        (lambda: models.GPT2Config(n_embd=10, n_head=3), "n_embd must be a multiple of n_head"),
        (lambda: models.LlamaConfig(num_attention_heads=4, num_key_value_heads=3), "multiple"),
        (lambda: models.LlamaConfig(head_dim=3), "head_dim must be even"),
        (lambda: models.BertConfig(vocab_size=0), "vocab_size must be an int"),
        (lambda: models.WhisperConfig(d_model=0), "d_model must be an int"),
        (lambda: models.gpt2("tiny"), "size must be one of"),
        (lambda: models.LSTMLanguageModel(5, 2, 3, 1, tie_weights=True), "nhid equal to ninp"),
        (lambda: models.LSTMLanguageModel(5, 2, 3, 1, rnn_type="X"), "rnn_type"),
    ],
)
def test_impossible_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_impossible_inputs():
    gpt2 = models.GPT2Model(models.GPT2Config(**reference.GPT2))
    with pytest.raises(ValueError, match="at most 32 positions; got 33"):
        gpt2(kiln.zeros(1, 33, dtype=kiln.int64))
    with pytest.raises(ValueError, match="input_ids must be integers"):
        gpt2(kiln.zeros(1, 3))
    with pytest.raises(ValueError, match="expected 3 positions"):
        gpt2(kiln.zeros(1, 3, dtype=kiln.int64), attention_mask=kiln.tensor([[0, 1]]))
    with pytest.raises(TypeError, match="expected a GPT2Config"):
        models.GPT2Model(models.BertConfig())
    with pytest.raises(ValueError, match="expected images of 32 x 32"):
        models.VisionTransformer(**reference.VIT)(kiln.ones(1, 3, 16, 16))
    with pytest.raises(ValueError, match="at least 16 x 16"):
        models.unet(base_channels=2)(kiln.ones(1, 3, 8, 32))
    with pytest.raises(ValueError, match="input_features must be"):
        models.whisper(**reference.WHISPER)(kiln.ones(1, 8, 20), kiln.ones(1, 1).long())


def test_stochastic_depth():
    depth = models.convnext.StochasticDepth(0.25, "row")
    y = depth(kiln.ones(4000, 2))
    kept = y[:, 0] != 0
    assert abs(kept.float().mean().item() - 0.75) < 0.03
    assert kiln.equal(y[kept], kiln.full_like(y[kept], 1 / 0.75))
    assert kiln.equal(y[:, 0], y[:, 1])
    depth.eval()
    assert kiln.equal(depth(kiln.ones(3, 2)), kiln.ones(3, 2))
    assert (models.convnext.StochasticDepth(1.0)(kiln.ones(3, 2)) == 0).all()
