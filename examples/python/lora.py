"""LoRA (Hu et al., 2022): a network learns a second task by small updates beside frozen weights.

    python examples/python/lora.py
"""

import kiln
from kiln import nn


def train(model, parameters, x, y, steps=200):
    optimizer = kiln.optim.AdamW(parameters, lr=5e-3)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


kiln.manual_seed(0)
x = kiln.randn(256, 16)
model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
print(f"first task: loss {train(model, model.parameters(), x, x[:, :1]):.4f}")

nn.lora(model, rank=2)
trainable = [p for p in model.parameters() if p.requires_grad]
count, total = sum(p.numel() for p in trainable), sum(p.numel() for p in model.parameters())
print(f"{count} of {total} numbers are trained")
print(f"second task: loss {train(model, trainable, x, 0.5 * x[:, 1:2]):.4f}")
nn.merge_and_unload(model)
print(model)
