"""An MLP with two parameter groups, a step schedule, clipping, and a run that is cut and resumed."""

import os
import sys

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR

rng = np.random.default_rng(0)
inputs = torch.from_numpy(rng.normal(size=(256, 8)).astype("float32"))
targets = torch.sin(inputs.sum(dim=1, keepdim=True)) + 0.1 * inputs[:, :1] ** 2


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.LayerNorm(width))
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def build() -> tuple[Net, SGD, StepLR]:
    model = Net(32)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = SGD(
        [{"params": decayed, "weight_decay": 1e-3}, {"params": others, "lr": 0.02}],
        lr=0.05,
        momentum=0.9,
        nesterov=True,
    )
    return model, optimizer, StepLR(optimizer, step_size=2, gamma=0.5)


def epoch(model: Net, optimizer: SGD, scheduler: StepLR) -> None:
    model.train()
    total = 0.0
    for first in range(0, len(inputs), 64):
        x, y = inputs[first : first + 64], targets[first : first + 64]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        total += loss.item() * len(x)
        print("norm", norm.item())
    scheduler.step()
    print("epoch", total / len(inputs), *[group["lr"] for group in optimizer.param_groups])


model, optimizer, scheduler = build()
with torch.no_grad():
    for name, p in model.named_parameters():
        p.copy_(torch.from_numpy(rng.normal(0.0, 0.3, tuple(p.shape)).astype("float32")))
for _ in range(3):
    epoch(model, optimizer, scheduler)

path = os.path.join(sys.argv[1], "checkpoint.pt")
torch.save(
    {
        "epoch": 3,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
    },
    path,
)
for _ in range(3):
    epoch(model, optimizer, scheduler)
end = [p.detach().clone() for p in model.parameters()]

model, optimizer, scheduler = build()
checkpoint = torch.load(path)
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
assert checkpoint["epoch"] == 3
for _ in range(3):
    epoch(model, optimizer, scheduler)
assert all(torch.equal(a, b) for a, b in zip(end, model.parameters()))

model.eval()
with torch.no_grad():
    print("test", nn.functional.l1_loss(model(inputs), targets).item())
