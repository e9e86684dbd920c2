"""The source of kiln.models with PyTorch in Kiln's place: equal keys, outputs and gradients."""

import importlib
import pathlib
import re
import sys
import types

import numpy as np
import pytest

import kiln
import model_reference as reference
from kiln import models

torch = pytest.importorskip("torch")


class Translated(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds `torch_models.x` in the file of `kiln.models.x`, and reads torch for kiln in it."""

    def __init__(self):
        pass

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] != "torch_models":
            return None
        folder = pathlib.Path(models.__file__).parent
        file = folder / f"{name.partition('.')[2] or '__init__'}.py"
        loader = importlib.machinery.SourceFileLoader(name, str(file))
        loader.get_code = types.MethodType(translated_code, loader)
        return importlib.util.spec_from_loader(name, loader, is_package="." not in name)


def translated_code(loader, name):
    text = pathlib.Path(loader.path).read_text()
    text = re.sub(r"^import kiln$", "import torch as kiln", text, flags=re.M)
    # What Kiln does itself, as reading tokenizers' files, stays.
    text = re.sub(r"^from kiln\b(?!\._C)", "from torch", text, flags=re.M)
    return compile(text, f"{loader.path} with torch", "exec")


@pytest.fixture(scope="module")
def theirs():
    finder = Translated()
    sys.meta_path.insert(0, finder)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the models are small, and its threads wait by spinning
    yield importlib.import_module("torch_models")
    torch.set_num_threads(threads)
    sys.meta_path.remove(finder)


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


IDS = reference.tokens()
STEPS = np.array([3, 40])
DDPM = dict(
    ch=8, ch_mult=(1, 2), num_res_blocks=1, attn_resolutions=(8,), resolution=16, dropout=0.0
)
CASES = {
    "lenet": (lambda m: m.lenet(), [numbers(2, 1, 28, 28)]),
    "lenet of colours": (lambda m: m.LeNet(7, in_channels=3), [numbers(2, 3, 32, 32)]),
    "mlp": (lambda m: m.mlp(5, [8, 3], dropout=0.0), [numbers(4, 5)]),
    "resnet": (
        lambda m: m.resnet18(num_classes=3, zero_init_residual=True),
        [numbers(2, 3, 48, 48)],
    ),
    # With 32x32 the last norms see two values each, and amplify roundings 1e10 times.
    "resnet50": (lambda m: m.resnet50(num_classes=3), [numbers(2, 3, 48, 48)]),
    "mobilenet": (
        lambda m: m.mobilenet_v3_small(num_classes=3, dropout=0.0),
        [numbers(2, 3, 48, 48)],
    ),
    "convnext": (
        lambda m: m.convnext_atto(num_classes=3, stochastic_depth_prob=0.0),
        [numbers(2, 3, 32, 32)],
    ),
    "vit": (lambda m: m.VisionTransformer(**reference.VIT), [numbers(2, 3, 32, 32)]),
    "unet": (lambda m: m.unet(base_channels=4), [numbers(2, 3, 35, 38)]),
    "unet, bilinear": (
        lambda m: m.unet(1, 2, base_channels=4, bilinear=True),
        [numbers(1, 1, 32, 16)],
    ),
    "generator": (lambda m: m.Generator(nz=6, ngf=4), [numbers(3, 6, 1, 1)]),
    "discriminator": (lambda m: m.Discriminator(ndf=4), [numbers(3, 3, 64, 64)]),
    "ddpm": (lambda m: m.DDPMUNet(**DDPM), [numbers(2, 3, 16, 16), STEPS]),
    "ddpm, plain resizing": (
        lambda m: m.DDPMUNet(**DDPM, resamp_with_conv=False),
        [numbers(2, 3, 16, 16), STEPS],
    ),
    "dqn": (lambda m: m.DQN(4, 2, hidden=8), [numbers(5, 4)]),
    "dqn, dueling": (lambda m: m.DQN(4, 2, hidden=8, dueling=True), [numbers(5, 4)]),
    "atari": (lambda m: m.AtariDQN(6), [abs(numbers(2, 4, 84, 84)) * 100]),
    "lstm": (lambda m: m.LSTMLanguageModel(61, 8, 12, 2, dropout=0.0), [IDS]),
    "gru, tied": (
        lambda m: m.LSTMLanguageModel(61, 8, 8, 1, 0.0, tie_weights=True, rnn_type="GRU"),
        [IDS],
    ),
    "gpt2": (
        lambda m: m.GPT2LMHeadModel(
            m.GPT2Config(**reference.GPT2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        ),
        [IDS],
    ),
    "llama": (lambda m: m.LlamaForCausalLM(m.LlamaConfig(**reference.LLAMA)), [IDS]),
    "bert": (
        lambda m: m.BertForMaskedLM(
            m.BertConfig(
                **reference.BERT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
            )
        ),
        [IDS],
    ),
    "whisper": (
        lambda m: m.WhisperForConditionalGeneration(m.WhisperConfig(**reference.WHISPER)),
        [reference.spectrogram(), IDS],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_training_step_equals_pytorch(name, theirs):
    """The output and every parameter's gradient, in train mode; in double precision, for norms over
    few values enlarge what f32 rounds."""
    make, inputs = CASES[name]
    wide = {np.dtype(np.float32): np.float64}
    results = []
    for lib, module in ((kiln, models), (torch, theirs)):
        model = reference.fill(make(module), lib.from_numpy).train().double()
        y = model(*[lib.from_numpy(x.astype(wide.get(x.dtype, x.dtype))) for x in inputs])
        y = y.logits if hasattr(y, "logits") else y
        (y - 0.5).square().mean().backward()
        gradients = {
            name: None if p.grad is None else p.grad.numpy() for name, p in model.named_parameters()
        }
        state = {key: (tuple(x.shape), x.detach().numpy()) for key, x in model.state_dict().items()}
        results.append((y.detach().numpy(), gradients, state))
    (y, gradients, state), (their_y, their_gradients, their_state) = results
    assert list(state) == list(their_state)
    np.testing.assert_allclose(y, their_y, rtol=1e-6, atol=1e-6 * abs(their_y).max())
    assert list(gradients) == list(their_gradients)
    largest = max(abs(g).max() for g in their_gradients.values() if g is not None)
    for key, expected in their_gradients.items():
        if expected is None:
            assert gradients[key] is None
            continue
        atol = 1e-5 * abs(expected).max() + 1e-7 * largest
        np.testing.assert_allclose(gradients[key], expected, rtol=1e-5, atol=atol, err_msg=key)
    for key, (shape, values) in their_state.items():  # running statistics moved alike
        assert state[key][0] == shape
        np.testing.assert_allclose(state[key][1], values, rtol=1e-6, atol=1e-7, err_msg=key)


def test_vae_equals_pytorch(theirs):
    x = abs(numbers(3, 1, 4, 5)) % 1
    results = []
    for lib, module in ((kiln, models), (torch, theirs)):
        model = reference.fill(module.VAE(20, 16, 3), lib.from_numpy)
        out, mu, logvar = model(lib.from_numpy(x))  # eval mode: the code is mu
        loss = module.vae_loss(out, lib.from_numpy(x), mu, logvar, beta=0.5)
        loss.backward()
        results.append([loss.item(), *[p.grad.numpy() for p in model.parameters()]])
    for ours, expected in zip(*results):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_diffusion_equals_pytorch(theirs):
    """The noise of each step, and samples where no step draws any."""
    x, noise, start = (
        numbers(2, 3, 16, 16),
        numbers(2, 3, 16, 16, seed=2),
        numbers(2, 3, 16, 16, seed=3),
    )
    for schedule in ("linear", "cosine"):
        results = []
        for lib, module in ((kiln, models), (torch, theirs)):
            model = reference.fill(module.DDPMUNet(**DDPM), lib.from_numpy).double()
            diffusion = module.GaussianDiffusion(50, beta_schedule=schedule)
            given = [lib.from_numpy(a) for a in (x.astype(float), STEPS, noise.astype(float))]
            loss = diffusion.loss(model, *given)
            kept, lib.randn = (
                lib.randn,
                lambda *shape, **options: lib.from_numpy(start.astype(float)),
            )
            try:
                sample = diffusion.sample(model, (2, 3, 16, 16), steps=5, eta=0.0)
            finally:
                lib.randn = kept
            results.append([diffusion.q_sample(*given).numpy(), loss.item(), sample.numpy()])
        for ours, expected in zip(*results):
            np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["lstm", "gpt2", "llama"])
def test_generation_equals_pytorch(name, theirs):
    """Greedy, with prompts of different lengths and stop tokens."""
    prompts = [[5, 6, 7, 8], [9], [10, 11]]
    written = []
    for lib, module in ((kiln, models), (torch, theirs)):
        model = reference.fill(CASES[name][0](module), lib.from_numpy)
        out = model.generate(prompts, max_new_tokens=9, eos_token_id=[33, 44], pad_token_id=0)
        written.append(out.tolist())
    assert written[0] == written[1]
