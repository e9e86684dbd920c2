"""A GPT-2 with a tokenizer of its own writes text: prompts in one batch, several ways to draw.

    python examples/python/gpt2_text.py                      # a small one, without training
    python examples/python/gpt2_text.py --weights FOLDER     # public weights, as the hub has them
"""

import argparse

import kiln
from kiln.models import GPT2LMHeadModel, Tokenizer, gpt2

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--weights", help="a folder of public weights, with tokenizer.json")
parser.add_argument("--tokens", type=int, default=20)
options = parser.parse_args()

kiln.manual_seed(0)
prompts = ["The meaning of life", "Once"]
if options.weights:
    model = GPT2LMHeadModel.from_pretrained(options.weights)
    tokenizer = Tokenizer.from_file(options.weights)
    encode, decode = tokenizer.encode, tokenizer.decode
else:
    # Letters are tokens; the weights are random, and so is the text.
    model = gpt2(vocab_size=128, n_positions=128, n_embd=64, n_layer=2, n_head=4, eos_token_id=10)
    model.eval()
    encode = lambda text: list(text.encode())  # noqa: E731
    decode = lambda ids: bytes(ids).decode(errors="replace")  # noqa: E731

ids = [encode(prompt) for prompt in prompts]
ways = {
    "likeliest": {},
    "drawn": dict(do_sample=True, temperature=0.8, top_k=40, top_p=0.95, seed=1),
}
for name, way in ways.items():
    for row, prompt in zip(model.generate(ids, max_new_tokens=options.tokens, **way), ids):
        text = decode(row[len(row) - options.tokens :].tolist())
        print(f"{name}: {decode(prompt)!r} + {text!r}")
