"""The peer's models under torch.compile, for kiln_bench --compile, which starts this program.

Reads lines from standard input and answers each with a line: "make ROW" with "ok" and the values
that the sides are compared by, or "none", or "error" and why; "run N" with "ok" when the row has
run N times. The models are those of bench/peer/models.cpp.
"""

import math
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, LENGTH, TOKENS = 256, 8, 4, 128, 256


def random_bits(seed, n):
    """As in bench/inputs.h."""
    with np.errstate(over="ignore"):
        i = np.arange(1, n + 1, dtype=np.uint64)
        z = (np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)) ^ (i * np.uint64(0xD1B54A32D192ED03))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(shape, seed, low=-1.0, high=1.0):
    unit = (random_bits(seed, math.prod(shape)) >> np.uint64(40)).astype(np.float32)
    unit *= np.float32(2**-24)
    low, high = np.float32(low), np.float32(high)
    return torch.from_numpy(low + (high - low) * unit).reshape(shape)


def indices(shape, seed, end):
    bits = random_bits(seed, math.prod(shape)) >> np.uint64(20)
    return torch.from_numpy((bits % np.uint64(end)).astype(np.int64)).reshape(shape)


def sample(x):
    values = x.detach().reshape(-1)
    step = 1 if values.numel() <= 1024 else values.numel() // 1021
    return values[::step].tolist()


def initialize(model):
    with torch.no_grad():
        for i, (name, parameter) in enumerate(model.named_parameters()):
            if parameter.dim() >= 2:
                bound = 1 / math.sqrt(parameter.numel() // parameter.shape[0])
                parameter.copy_(uniform(tuple(parameter.shape), 100 + i, -bound, bound))
            elif name.endswith("bias"):
                parameter.zero_()
    return model


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def tiny_mlp():
    return nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU()),
        *(nn.Dropout(0.5), nn.Linear(128, 10)),
    )


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(WIDTH, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, x):
        y = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def train(model, x, target, optimizer, loss_of, **options):
    model = initialize(model).train()
    optimizer = optimizer(model.parameters(), fused=True, **options)
    loss_fn = torch.compile(lambda: loss_of(model(x), target))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_fn()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, lambda: [float(step()) for _ in range(8)]


def infer(model, x):
    model = torch.compile(initialize(model).eval())

    def step():
        with torch.inference_mode():
            return model(x)

    return step, lambda: sample(step())


def token_loss(logits, target):
    return F.cross_entropy(logits.view(-1, TOKENS), target.view(-1))


def image(batch):
    return uniform((batch, 1, 28, 28), 1, 0, 1)


ROWS = {
    "train_mlp": lambda: train(
        *(mlp(), uniform((64, 784), 1, 0, 1), indices((64,), 2, 10)),
        *(torch.optim.Adam, F.cross_entropy),
        lr=1e-5,
    ),
    "train_tiny_mlp": lambda: train(
        *(tiny_mlp(), uniform((32, 64), 1), uniform((32, 1), 2), torch.optim.SGD, F.mse_loss),
        lr=1e-3,
    ),
    "train_cnn": lambda: train(
        cnn(), image(64), indices((64,), 2, 10), torch.optim.Adam, F.cross_entropy, lr=1e-4
    ),
    "train_gpt": lambda: train(
        *(Gpt(), indices((8, LENGTH), 1, TOKENS), indices((8, LENGTH), 2, TOKENS)),
        *(torch.optim.AdamW, token_loss),
        lr=1e-4,
    ),
    "infer_cnn_b1": lambda: infer(cnn(), image(1)),
    "infer_cnn_b64": lambda: infer(cnn(), image(64)),
    "infer_gpt_b1": lambda: infer(Gpt(), indices((1, LENGTH), 1, TOKENS)),
}


def answer(line, state):
    command, _, argument = line.partition(" ")
    if command == "make":
        state.clear()
        torch.compiler.reset()
        if argument not in ROWS:
            return "none"
        state["step"], check = ROWS[argument]()
        return "ok " + " ".join(map(repr, check()))
    for _ in range(int(argument)):
        state["step"]()
    return "ok"


def main():
    torch.set_num_threads(int(sys.argv[1]))
    replies, sys.stdout = sys.stdout, sys.stderr  # nothing else may speak on that line
    state = {}
    for line in sys.stdin:
        try:
            reply = answer(line.strip(), state)
        except Exception as error:
            reply = "error " + " ".join(str(error).split())[:300]
        print(reply, file=replies, flush=True)


if __name__ == "__main__":
    main()
