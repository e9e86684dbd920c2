"""`generate`: prompts, ends, drawing, caches, streams, and what is refused."""

import math

import numpy as np
import pytest

import kiln
import model_reference as reference
from kiln import models
from kiln.models.generation import GenerationOptions, choose, left_padded, penalized


def gpt2():
    return reference.fill(
        models.GPT2LMHeadModel(models.GPT2Config(**reference.GPT2, eos_token_id=None)),
        kiln.from_numpy,
    )


def llama():
    config = models.LlamaConfig(**reference.LLAMA, eos_token_id=None)
    return reference.fill(models.LlamaForCausalLM(config), kiln.from_numpy)


def lstm():
    return reference.fill(models.LSTMLanguageModel(61, 8, 12, 2), kiln.from_numpy)


MODELS = {"gpt2": gpt2, "llama": llama, "lstm": lstm}
PROMPTS = [[5, 6, 7, 8, 9], [10], [11, 12, 13]]


def by_hand(model, prompt, count):
    """The likeliest tokens, with a forward pass over everything for each."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(model(kiln.tensor([ids])).logits[0, -1].argmax().item())
    return ids[len(prompt) :]


@pytest.mark.parametrize("name", MODELS)
def test_prompts_of_several_lengths_are_as_alone(name):
    model = MODELS[name]()
    for use_cache in (True, False):
        out = model.generate(PROMPTS, max_new_tokens=6, use_cache=use_cache)
        assert out.shape == (3, 11)
        for row, prompt in zip(out.tolist(), PROMPTS):
            assert row[: 5 - len(prompt)] == [0] * (5 - len(prompt))
            assert row[5 - len(prompt) :] == prompt + by_hand(model, prompt, 6)


@pytest.mark.parametrize("name", MODELS)
def test_cache_gives_the_logits_of_the_whole(name):
    model = MODELS[name]()
    ids = kiln.from_numpy(reference.tokens(2, 9))
    whole = model(ids).logits
    cache, parts = None, []
    for part in ids.split([4, 1, 3, 1], dim=1):
        options = {} if name == "lstm" else {"use_cache": True}
        with kiln.no_grad():
            output = model(part, past_key_values=cache, **options)
        cache = output.past_key_values
        parts.append(output.logits)
    np.testing.assert_allclose(kiln.cat(parts, 1).numpy(), whole.detach().numpy(), atol=2e-5)


def test_cached_positions_have_gradients():
    model = gpt2()
    ids = kiln.from_numpy(reference.tokens(2, 6))
    gradients = []
    for cut in (6, 4):
        model.zero_grad()
        cache, total = models.KeyValueCache(), 0
        for part in ids.split([cut, 6 - cut] if cut < 6 else [6], dim=1):
            total = total + model(part, past_key_values=cache).logits.square().sum()
        total.backward()
        gradients.append(model.transformer.h[0].attn.c_attn.weight.grad.numpy())
    scale = abs(gradients[0]).max()
    np.testing.assert_allclose(gradients[1], gradients[0], atol=1e-4 * scale)


def test_cache_reorders_rows():
    model = gpt2()
    ids = kiln.from_numpy(reference.tokens(2, 5))
    with kiln.no_grad():
        cache = model(ids[:, :4], use_cache=True).past_key_values
        cache.reorder(kiln.tensor([1, 1, 0]))
        logits = model(ids[[1, 1, 0], 4:], past_key_values=cache).logits[:, 0]
        expected = model(ids).logits[[1, 1, 0], -1]
    np.testing.assert_allclose(logits.numpy(), expected.numpy(), atol=1e-5)


def test_ends():
    model = gpt2()
    plain = model.generate([PROMPTS[0]], max_new_tokens=8)[0, 5:].tolist()
    end = plain[3]
    first = plain.index(end)
    out = model.generate([PROMPTS[0]], max_new_tokens=8, eos_token_id=end)[0, 5:].tolist()
    assert out == plain[: first + 1]
    out = model.generate([PROMPTS[0]], max_new_tokens=8, stop=[plain[1:4]])[0, 5:].tolist()
    assert out == plain[:4]
    longer = model.generate([PROMPTS[0]], max_new_tokens=8, eos_token_id=end, min_new_tokens=6)
    assert end not in longer[0, 5:11].tolist()
    assert model.generate([PROMPTS[0]], max_length=8).shape == (1, 8)
    # A row that has ended gets padding while others go on.
    out = model.generate(PROMPTS, max_new_tokens=8, eos_token_id=[end], pad_token_id=60).tolist()
    for row in out:
        written = row[5:]
        if end in written:
            after = written[written.index(end) + 1 :]
            assert after == [60] * len(after)


def test_streams():
    model = gpt2()
    out = model.generate(PROMPTS, max_new_tokens=6)
    steps = list(model.generate_stream(PROMPTS, max_new_tokens=6))
    assert [step.tolist() for step in steps] == out[:, 5:].T.tolist()
    seen = []
    model.generate(PROMPTS, max_new_tokens=6, streamer=lambda step: seen.append(step.tolist()))
    assert seen == out[:, 5:].T.tolist()

    class Streamer:
        put = seen.append
        ended = False

        def end(self):
            self.ended = True

    streamer = Streamer()
    model.generate(PROMPTS, max_new_tokens=2, streamer=streamer)
    assert streamer.ended and len(seen) == 8
    stream = model.generate_stream(PROMPTS, max_new_tokens=6)
    next(stream)
    stream.close()  # nothing is left behind


def test_seeds_and_generators():
    model = llama()
    options = dict(max_new_tokens=8, do_sample=True, temperature=1.5)
    first = model.generate(PROMPTS, seed=3, **options)
    assert kiln.equal(first, model.generate(PROMPTS, seed=3, **options))
    assert kiln.equal(
        first, model.generate(PROMPTS, generator=kiln.Generator().manual_seed(3), **options)
    )
    assert not kiln.equal(first, model.generate(PROMPTS, seed=4, **options))


def frequencies(logits, **options):
    chosen = GenerationOptions(do_sample=True, seed=1, **options)
    chosen.check(None)
    drawn = choose(kiln.tensor([logits]).expand(20000, -1), chosen)
    return np.bincount(drawn.numpy(), minlength=len(logits)) / 20000


def test_drawing_follows_the_distribution():
    p = np.array([0.1, 0.4, 0.05, 0.25, 0.2])
    logits = np.log(p).tolist()
    np.testing.assert_allclose(frequencies(logits), p, atol=0.015)
    hot = p**0.5 / (p**0.5).sum()
    np.testing.assert_allclose(frequencies(logits, temperature=2.0), hot, atol=0.015)
    top = np.array([0, 0.4, 0, 0.25, 0])
    np.testing.assert_allclose(frequencies(logits, top_k=2), top / top.sum(), atol=0.015)
    # 0.4 + 0.25 < 0.7: the third joins.
    top = np.array([0, 0.4, 0, 0.25, 0.2])
    np.testing.assert_allclose(frequencies(logits, top_p=0.7), top / top.sum(), atol=0.015)
    assert frequencies(logits, top_p=1e-6)[1] == 1
    # The 3 likeliest are 0.47, 0.29, 0.24 of their sum: two of them make 0.76.
    top = np.array([0, 0.4, 0, 0.25, 0])
    np.testing.assert_allclose(frequencies(logits, top_k=3, top_p=0.7), top / top.sum(), atol=0.015)


def test_penalty():
    logits = kiln.tensor([[2.0, -2.0, 1.0, -1.0]])
    seen = kiln.tensor([[True, True, False, False]])
    assert penalized(logits, seen, 2.0).tolist() == [[1, -4, 1, -1]]


def test_padding():
    ids, mask = left_padded([[1, 2], [3]], None, 9)
    assert ids.tolist() == [[1, 2], [9, 3]] and mask.tolist() == [[True, True], [False, True]]
    # Padding behind the tokens moves before them.
    ids, mask = left_padded(kiln.tensor([[1, 2], [3, 0]]), kiln.tensor([[1, 1], [1, 0]]), 9)
    assert ids.tolist() == [[1, 2], [9, 3]] and mask.tolist() == [[True, True], [False, True]]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be an int of at least 1"),
        ({"max_length": 3}, "max_length must be above the prompt's length of 5"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"temperature": math.nan}, "temperature must be above 0"),
        ({"top_k": 0}, "top_k must be an int"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1"),
        ({"repetition_penalty": 0}, "repetition_penalty must be above 0"),
        ({"stop": [[]]}, "each sequence of stop"),
        ({"seed": 1, "generator": kiln.Generator()}, "a generator or a seed"),
        ({"max_new_tokens": 40}, "more than the model's 32 positions"),
    ],
)
def test_impossible_options(options, message):
    with pytest.raises(ValueError, match=message):
        gpt2().generate(PROMPTS, **options)
    with pytest.raises(ValueError, match=message):
        gpt2().generate_stream(PROMPTS, **options)


def test_wrong_prompts():
    model = gpt2()
    with pytest.raises(ValueError, match="at least one token"):
        model.generate([[1], []])
    with pytest.raises(ValueError, match="at least one token"):
        model.generate([])
    with pytest.raises(TypeError, match="must be integers"):
        model.generate(kiln.ones(1, 2))
    with pytest.raises(ValueError, match="attention_mask must have the shape"):
        model.generate(kiln.ones(1, 2, dtype=kiln.int64), kiln.ones(1, 3))
    with pytest.raises(TypeError, match="no option num_beams"):
        model.generate(PROMPTS, num_beams=2)
    with pytest.raises(IndexError):
        model.generate([[61]])
    with pytest.warns(UserWarning, match="no effect without do_sample"):
        model.generate(PROMPTS, max_new_tokens=1, temperature=0.5)
