"""A Vision Transformer: patches by reshaping, a class token, label smoothing, a warm-up."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

rng = np.random.default_rng(4)


def pair(t: int | tuple[int, int]) -> tuple[int, int]:
    return t if isinstance(t, tuple) else (t, t)


class PreNorm(nn.Module):
    def __init__(self, dim: int, fn: nn.Module) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x: Tensor, **kwargs: Any) -> Tensor:
        out: Tensor = self.fn(self.norm(x), **kwargs)
        return out


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int = 2, dim_head: int = 8) -> None:
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.attend = nn.Softmax(dim=-1)
        self.to_qkv = nn.Linear(dim, dim_head * heads * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(dim_head * heads, dim), nn.Dropout(0.0))

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = map(lambda t: t.unflatten(-1, (self.heads, -1)).movedim(2, 1), qkv)
        dots = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        heads = torch.einsum("bhij,bhjd->bhid", self.attend(dots), v)
        out: Tensor = self.to_out(heads.transpose(1, 2).flatten(2))
        return out


class ViT(nn.Module):
    def __init__(
        self,
        image_size: int | tuple[int, int],
        patch_size: int | tuple[int, int],
        num_classes: int,
        dim: int,
        depth: int,
        mlp_dim: int,
        channels: int = 3,
    ) -> None:
        super().__init__()
        (ih, iw), (self.ph, self.pw) = pair(image_size), pair(patch_size)
        num_patches = (ih // self.ph) * (iw // self.pw)
        patch_dim = channels * self.ph * self.pw
        self.to_embedding = nn.Sequential(
            nn.LayerNorm(patch_dim), nn.Linear(patch_dim, dim), nn.LayerNorm(dim)
        )
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        feed_forward: Callable[[], nn.Module] = lambda: nn.Sequential(  # noqa: E731
            nn.Linear(dim, mlp_dim), nn.GELU(approximate="tanh"), nn.Linear(mlp_dim, dim)
        )
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(
                nn.ModuleList([PreNorm(dim, Attention(dim)), PreNorm(dim, feed_forward())])
            )
        self.to_latent = nn.Identity()
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img: Tensor) -> Tensor:
        b, c, h, w = img.shape
        x = img.reshape(b, c, h // self.ph, self.ph, w // self.pw, self.pw)
        x = self.to_embedding(x.permute(0, 2, 4, 3, 5, 1).reshape(b, -1, c * self.ph * self.pw))
        x = torch.cat((self.cls_token.repeat(b, 1, 1), x), dim=1)
        x += self.pos_embedding[:, : x.shape[1]]
        for layer in self.layers:
            assert isinstance(layer, nn.ModuleList)
            attn, ff = layer
            x = attn(x) + x
            x = ff(x) + x
        out: Tensor = self.mlp_head(self.to_latent(x[:, 0]))
        return out


def init(module: nn.Module, std: float) -> None:
    for name, p in module.named_parameters(recurse=False):
        if p.dim() > 1 or name == "bias":
            p.data = torch.as_tensor(rng.normal(0, std, tuple(p.shape)), dtype=torch.float32)


model = ViT(image_size=(12, 16), patch_size=4, num_classes=4, dim=16, depth=2, mlp_dim=32)
model.apply(partial(init, std=0.2))
images = torch.from_numpy(rng.normal(size=(64, 3, 12, 16)).astype("float32"))
labels = images[:, 0].mean(dim=(1, 2)).argsort().argsort() // 16
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min(1.0, (s + 1) / 5) * 0.5 * (1 + math.cos(math.pi * s / 20))
)
for step in range(20):
    index = torch.arange(step * 16, step * 16 + 16) % 64
    loss = criterion(model(images[index]), labels[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print("loss", loss.item(), scheduler.get_last_lr()[0])
with torch.no_grad():
    probabilities = model.eval()(images).softmax(dim=-1)
print("top", *torch.topk(probabilities, k=2, dim=-1)[0][:5].flatten().tolist())
