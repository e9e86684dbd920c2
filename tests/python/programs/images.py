"""A small CNN: AdamW with a warm-up and a cosine, written for a machine with or without CUDA."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import Tensor

torch.backends.cudnn.benchmark = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
use_amp = device.type == "cuda"
torch.manual_seed(1)
if torch.cuda.is_available():
    torch.cuda.manual_seed_all(1)

rng = np.random.default_rng(1)
images = rng.normal(size=(96, 1, 12, 12)).astype("float32")
labels = rng.integers(0, 4, 96)
for image, label in zip(images, labels):  # a bright quarter says which class it is
    image[0, 6 * (label // 2) :, 6 * (label % 2) :][:6, :6] += 1.0


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(F.relu(self.norm(self.conv(x)), inplace=True), 2)


model = nn.Sequential(Block(1, 8), Block(8, 16), nn.Flatten(), nn.Linear(16 * 9, 4)).to(device)
for p in model.parameters():
    if p.dim() > 1:
        values = rng.normal(0.0, 0.2, tuple(p.shape)).astype("float32")
        p.data = torch.as_tensor(values, device=device)
    else:
        nn.init.constant_(p, 0.1)

criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05, amsgrad=True)
warmup = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=4)
decay = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[4])
scaler = torch.amp.GradScaler(device.type, enabled=use_amp)

for epoch in range(4):
    model.train()
    for i in range(0, 96, 32):
        x = torch.tensor(images[i : i + 32], device=device)
        y = torch.tensor(labels[i : i + 32], device=device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device.type, enabled=use_amp):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        print("loss", loss.item(), scheduler.get_last_lr()[0])
    model.eval()
    with torch.no_grad():
        outputs = model(torch.from_numpy(images).to(device))
        correct = (outputs.argmax(dim=1) == torch.from_numpy(labels).to(device)).sum().item()
        print("validation", F.cross_entropy(outputs, torch.from_numpy(labels)).item(), correct / 96)
