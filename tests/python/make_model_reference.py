"""Writes model_reference.json. Needs PyTorch, torchvision and transformers; the tests need the file
alone.

python tests/python/make_model_reference.py
"""

import json

import model_reference as reference
import torch
import torchvision
import transformers

VERSIONS = {m.__name__: m.__version__ for m in (torch, torchvision, transformers)}


def numpy(x):
    return x.detach().numpy()


def vision():
    out = {}
    for name, options, size in reference.VISION:
        model = getattr(torchvision.models, name)(num_classes=5, **options)
        reference.fill(model, torch.from_numpy)
        x = torch.from_numpy(reference.images(size)).requires_grad_()
        y = model(x)
        y.square().sum().backward()
        out[f"{name} {options}"] = {
            "output": reference.summary(numpy(y)),
            "gradient": reference.summary(numpy(x.grad)),
        }
    x = torch.from_numpy(reference.images(32))
    features = reference.fill(
        torch.nn.ModuleDict({"features": torchvision.models.vgg11_bn().features}), torch.from_numpy
    )["features"]
    out["vgg11_bn features"] = {"output": reference.summary(numpy(features(x)))}
    vit = torchvision.models.VisionTransformer(**reference.VIT, representation_size=12)
    y = reference.fill(vit, torch.from_numpy)(x)
    out["vit"] = {"output": reference.summary(numpy(y)), "keys": reference.digest(vit.state_dict())}
    mlp = torchvision.ops.MLP(6, [8, 4, 3], norm_layer=torch.nn.LayerNorm)
    y = reference.fill(mlp, torch.from_numpy)(x[0, 0, :, :6])
    out["mlp"] = {"output": reference.summary(numpy(y)), "keys": reference.digest(mlp.state_dict())}
    return out


def keys():
    out = {}
    with torch.device("meta"):
        for name in reference.FULL_SIZE:
            model = getattr(torchvision.models, name)()
            out[name] = reference.digest(model.state_dict())
        for name, config in (
            ("GPT2LMHeadModel", transformers.GPT2Config()),
            ("LlamaForCausalLM", transformers.LlamaConfig()),
            ("BertModel", transformers.BertConfig()),
            ("BertForMaskedLM", transformers.BertConfig()),
            ("BertForSequenceClassification", transformers.BertConfig()),
        ):
            state = getattr(transformers, name)(config).state_dict()
            out[name] = reference.digest(state)
        config = transformers.WhisperConfig(
            encoder_attention_heads=6,
            decoder_attention_heads=6,
            d_model=384,
        )
        state = transformers.WhisperForConditionalGeneration(config).state_dict()
        out["WhisperForConditionalGeneration"] = reference.digest(state)
    return out


def causal(model, ids, mask):
    """Logits, the loss, and what greedy generation writes."""
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    output = model(ids, attention_mask=mask, position_ids=positions)
    options = dict(max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=60)
    return {
        "logits": reference.summary(numpy(output.logits[:, 3:])),
        "loss": model(ids, labels=ids).loss.item(),
        "greedy": model.generate(ids, attention_mask=mask, **options).tolist(),
        "penalty": model.generate(
            ids, attention_mask=torch.ones_like(ids), repetition_penalty=1.5, **options
        ).tolist(),
    }


def language():
    out = {}
    ids = torch.from_numpy(reference.tokens())
    left = torch.from_numpy(reference.padding())
    for name, options in (
        ("gpt2", {}),
        ("gpt2 by layer", {"scale_attn_by_inverse_layer_idx": True}),
    ):
        config = transformers.GPT2Config(**reference.GPT2, **options)
        model = reference.fill(transformers.GPT2LMHeadModel(config), torch.from_numpy)
        out[name] = causal(model, ids, left)
    for name, options in (
        ("llama", {}),
        (
            "llama3",
            {
                "rope_parameters": reference.LLAMA3_ROPE,
                "attention_bias": True,
                "mlp_bias": True,
                "head_dim": 12,
                "tie_word_embeddings": True,
            },
        ),
    ):
        config = transformers.LlamaConfig(**reference.LLAMA, **options)
        model = reference.fill(transformers.LlamaForCausalLM(config), torch.from_numpy)
        out[name] = causal(model, ids, left)
    right = torch.from_numpy(reference.padding(left=False))
    types = (torch.arange(7) > 3).long().expand(2, 7)
    config = transformers.BertConfig(**reference.BERT)
    model = reference.fill(transformers.BertModel(config), torch.from_numpy)
    output = model(ids, attention_mask=right, token_type_ids=types)
    out["bert"] = {
        "hidden": reference.summary(numpy(output.last_hidden_state[0])),
        "pooled": reference.summary(numpy(output.pooler_output)),
    }
    model = reference.fill(transformers.BertForMaskedLM(config), torch.from_numpy)
    labels = ids.masked_fill(ids % 3 != 0, -100)
    output = model(ids, attention_mask=right, labels=labels)
    out["bert masked"] = {
        "logits": reference.summary(numpy(output.logits[0])),
        "loss": output.loss.item(),
    }
    model = reference.fill(transformers.BertForSequenceClassification(config), torch.from_numpy)
    output = model(ids, attention_mask=right, labels=torch.tensor([1, 0]))
    out["bert classes"] = {
        "logits": reference.summary(numpy(output.logits)),
        "loss": output.loss.item(),
    }
    config = transformers.WhisperConfig(**reference.WHISPER)
    model = reference.fill(transformers.WhisperForConditionalGeneration(config), torch.from_numpy)
    sound = torch.from_numpy(reference.spectrogram())
    output = model(sound, decoder_input_ids=ids)
    written = torch.full((2, 1), 3)
    for _ in range(8):
        logits = model(sound, decoder_input_ids=written).logits[:, -1]
        written = torch.cat([written, logits.argmax(-1, keepdim=True)], 1)
    out["whisper"] = {
        "logits": reference.summary(numpy(output.logits)),
        "loss": model(sound, labels=ids).loss.item(),
        "greedy": written.tolist(),
    }
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    data = {"versions": VERSIONS, "keys": keys(), "vision": vision(), "language": language()}
    reference.FILE.write_text(
        json.dumps(data, indent=None, separators=(",", ":")).replace("},", "},\n")
    )
