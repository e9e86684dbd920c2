"""Segmentation by a U-Net: skips, transposed convolutions, a Dice loss, a plateau schedule."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor, optim
from torch.utils.data import DataLoader, Dataset, random_split


class Discs(Dataset[dict[str, Tensor]]):
    """Noisy images of discs, and where the discs are."""

    def __init__(self, n: int, size: int) -> None:
        rng = np.random.default_rng(2)
        y, x = np.mgrid[:size, :size]
        self.masks = np.stack(
            [
                ((y - cy) ** 2 + (x - cx) ** 2 < r * r)
                for cy, cx, r in rng.integers(4, size - 4, (n, 3))
            ]
        ).astype(np.float32)
        self.images = (self.masks + rng.normal(0, 0.5, self.masks.shape)).astype(np.float32)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, idx: int) -> dict[str, Tensor]:
        return {
            "image": torch.as_tensor(self.images[idx].copy()).float().unsqueeze(0).contiguous(),
            "mask": torch.as_tensor(self.masks[idx].copy()).long().contiguous(),
        }


class DoubleConv(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.LeakyReLU(0.1, inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.InstanceNorm2d(out_channels, affine=True),
            nn.LeakyReLU(0.1, inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.double_conv(x)
        return out


class UNet(nn.Module):
    def __init__(self, n_classes: int, features: tuple[int, ...] = (6, 12)) -> None:
        super().__init__()
        self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        channels = 1
        for feature in features:
            self.downs.append(DoubleConv(channels, feature))
            channels = feature
        for feature in reversed(features):
            self.ups.append(nn.ConvTranspose2d(feature * 2, feature, kernel_size=2, stride=2))
            self.ups.append(DoubleConv(feature * 2, feature))
        self.bottleneck = DoubleConv(features[-1], features[-1] * 2)
        self.final_conv = nn.Conv2d(features[0], n_classes, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        skip_connections: list[Tensor] = []
        for down in self.downs:
            x = down(x)
            skip_connections.append(x)
            x = self.pool(x)
        x = self.bottleneck(x)
        skip_connections = skip_connections[::-1]
        for idx in range(0, len(self.ups), 2):
            x = self.ups[idx](x)
            skip = skip_connections[idx // 2]
            if x.shape != skip.shape:
                x = F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=False)
            x = self.ups[idx + 1](torch.cat((skip, x), dim=1))
        return self.final_conv(x)


def dice_coeff(input: Tensor, target: Tensor, epsilon: float = 1e-6) -> Tensor:
    sum_dim = (-1, -2)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


dataset = Discs(24, 18)
train_set, val_set = random_split(dataset, [16, 8], generator=torch.Generator().manual_seed(0))
train_set.indices, val_set.indices = list(range(16)), list(range(16, 24))
train_loader = DataLoader(train_set, shuffle=False, batch_size=4)
val_loader = DataLoader(val_set, shuffle=False, drop_last=True, batch_size=4)
model = UNet(n_classes=2)
rng = np.random.default_rng(3)
with torch.no_grad():
    for p in model.parameters():
        if p.dim() == 4:
            p.copy_(torch.from_numpy(rng.normal(0, 0.2, tuple(p.shape))))
        elif p.dim() == 1:
            p.copy_(torch.from_numpy(rng.normal(0.5, 0.1, tuple(p.shape))))
optimizer = optim.RMSprop(
    model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9, foreach=True
)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=0, factor=0.3)
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.4, 0.6]))
for epoch in range(5):
    model.train()
    for batch in train_loader:
        images, true_masks = batch["image"], batch["mask"]
        masks_pred = model(images)
        loss = criterion(masks_pred, true_masks)
        one_hot = F.one_hot(true_masks, 2).permute(0, 3, 1, 2).float()
        loss += 1 - dice_coeff(F.softmax(masks_pred, dim=1).float(), one_hot)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("loss", loss.item())
    model.eval()
    dice_score = 0.0
    with torch.inference_mode():
        for batch in val_loader:
            probabilities = F.softmax(model(batch["image"]), dim=1)
            one_hot = F.one_hot(batch["mask"], 2).permute(0, 3, 1, 2).float()
            dice_score += dice_coeff(probabilities[:, 1:], one_hot[:, 1:]).item()
    scheduler.step(dice_score)
    print("dice", dice_score / len(val_loader), optimizer.param_groups[0]["lr"])
