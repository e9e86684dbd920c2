"""A model of characters: a small Llama that learns Shakespeare, or these pages, and writes.

    python examples/python/char_gpt.py --minutes 10

Prints the loss on text that it has not seen, in nats for each character, and a sample now and then.
"""

import argparse
import math
import pathlib
import time

import numpy as np

import kiln

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAKESPEARE = ROOT.parent / "shared/data/tinyshakespeare/input.txt"


def read_text(path):
    """The file's text; without one Shakespeare where he is, otherwise the project's pages."""
    if path is None and SHAKESPEARE.exists():
        path = SHAKESPEARE
    if path is not None:
        return pathlib.Path(path).read_text(encoding="utf-8")
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("docs/*.md")))


def batches(ids, count, context, rng):
    """Inputs and targets [count, context] from random places."""
    starts = rng.integers(0, len(ids) - context, count)
    rows = np.stack([ids[start : start + context + 1] for start in starts])
    return kiln.from_numpy(rows[:, :-1].copy()), kiln.from_numpy(rows[:, 1:].copy())


def loss_of(model, x, y):
    return kiln.nn.functional.cross_entropy(model(x).logits.flatten(0, 1), y.flatten())


@kiln.no_grad()
def evaluate(model, ids, context, rows=64):
    """The mean loss on text from `rows` places, the same each time."""
    model.eval()
    x, y = batches(ids, rows, context, np.random.default_rng(0))
    loss = sum(loss_of(model, *part).item() for part in zip(x.split(16), y.split(16))) / (rows / 16)
    model.train()
    return loss


def sample(model, letters, count=200):
    """What the model writes behind a new line, in windows no longer than it has learned."""
    model.eval()
    start = letters.index("\n") if "\n" in letters else 0
    out = model.generate([[start]], max_new_tokens=count, do_sample=True, temperature=0.8, seed=1)
    model.train()
    return "".join(letters[i] for i in out[0].tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", help="a text file to learn from")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--steps", type=int, default=10**9, help="stop after so many")
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--every", type=int, default=250, help="steps between two reports")
    parser.add_argument("--save", help="a file for the weights")
    options = parser.parse_args()

    kiln.manual_seed(0)
    text = read_text(options.text)
    letters = sorted(set(text))
    codes = {letter: i for i, letter in enumerate(letters)}
    ids = np.array([codes[letter] for letter in text])
    cut = int(0.9 * len(ids))
    train, validation = ids[:cut], ids[cut:]
    model = kiln.models.llama(
        vocab_size=len(letters),
        hidden_size=options.width,
        intermediate_size=8 * options.width // 3,
        num_hidden_layers=options.layers,
        num_attention_heads=options.width // 32,
        eos_token_id=None,
    )
    print(f"{len(text)} characters of {len(letters)} kinds")
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = kiln.optim.AdamW(
        [{"params": matrices}, {"params": others, "weight_decay": 0.0}],
        lr=options.lr,
        betas=(0.9, 0.95),
        weight_decay=0.1,
    )
    rng = np.random.default_rng(1)
    start = time.monotonic()
    step = 0
    while True:
        # How much of the time or of the steps is over; the rate rises, then falls as a cosine.
        done = max((time.monotonic() - start) / (60 * options.minutes), step / options.steps)
        if step % options.every == 0 or done >= 1:
            loss = evaluate(model, validation, options.context)
            seconds = time.monotonic() - start
            print(f"step {step}  {seconds:.0f} s  {loss:.3f} nats per character", flush=True)
            if done >= 1 or step % (4 * options.every) == 0:
                print(sample(model, letters))
        if done >= 1:
            break
        rate = min(1.0, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = options.lr * rate
        x, y = batches(train, options.batch, options.context, rng)
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        kiln.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
    if options.save:
        kiln.save(model.state_dict(), options.save)


if __name__ == "__main__":
    main()
