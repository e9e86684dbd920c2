"""A transformer over characters: named groups, accumulated gradients, a warm-up by a function, and
an average of the weights."""

import copy
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

text = "the quick brown fox jumps over the lazy dog and the cat sat on the mat. " * 6
letters = sorted(set(text))
code = torch.tensor([letters.index(c) for c in text])
rng = np.random.default_rng(2)
context, width = 16, 24


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(len(letters), width)
        self.places = nn.Parameter(torch.zeros(context, width))
        self.layers = nn.ModuleList([Layer() for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        mask = torch.full((context, context), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, index: Tensor) -> Tensor:
        x: Tensor = self.tokens(index) + self.places
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.norm(x) @ self.tokens.weight.T


model = Model()
with torch.no_grad():
    for name, p in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(p)
        elif "norm" not in name:
            p.copy_(torch.from_numpy(rng.normal(0.0, 0.15, tuple(p.shape)).astype("float32")))
average = copy.deepcopy(model).requires_grad_(False)

no_decay = [(n, p) for n, p in model.named_parameters() if p.ndim < 2]
decay = [(n, p) for n, p in model.named_parameters() if p.ndim >= 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}],
    lr=1e-2,
    betas=(0.9, 0.95),
    foreach=True,
)
assert "tokens.weight" in optimizer.param_groups[0]["param_names"]


def rate(step: int) -> float:
    return min((step + 1) / 4, 0.5 * (1 + math.cos(math.pi * step / 20)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
x = y = code[:0]
for step in range(12):
    optimizer.zero_grad()
    for part in range(2):
        starts = rng.integers(0, len(text) - context - 1, 8)
        x = torch.stack([code[s : s + context] for s in starts])
        y = torch.stack([code[s + 1 : s + context + 1] for s in starts])
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1)) / 2
        loss.backward()
        print("loss", loss.item())
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 0.1)
    print("step", norm.item(), optimizer.param_groups[0]["lr"])
count = sum(p.numel() for p in model.parameters() if p.requires_grad)
print("average", F.cross_entropy(average(x).flatten(0, 1), y.flatten()).item(), count)
