"""Denoising diffusion: a small U-Net with times, an average of the weights, sampling."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.optim import Adam

rng = np.random.default_rng(10)
timesteps, image_size, batch_size = 30, 8, 8


def noise(*shape: int) -> Tensor:
    return torch.from_numpy(rng.normal(size=shape).astype(np.float32))


def default(val: Tensor | None, d: Tensor | Callable[[], Tensor]) -> Tensor:
    return val if val is not None else d() if callable(d) else d


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, time: Tensor) -> Tensor:
        half_dim = self.dim // 2
        scale = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=time.device) * -scale)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, dim: int, dim_out: int, time_dim: int, groups: int = 4) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out * 2))
        self.proj = nn.Conv2d(dim, dim_out, 3, padding=1, padding_mode="circular")
        self.norm = nn.GroupNorm(groups, dim_out)
        self.act = nn.SiLU()
        self.res_conv = nn.Conv2d(dim, dim_out, 1) if dim != dim_out else nn.Identity()

    def forward(self, x: Tensor, time_emb: Tensor) -> Tensor:
        scale, shift = self.mlp(time_emb)[..., None, None].chunk(2, dim=1)
        h = self.norm(self.proj(x)) * (scale + 1) + shift
        return self.act(h) + self.res_conv(x)


class LinearAttention(nn.Module):
    def __init__(self, dim: int, heads: int = 2, dim_head: int = 4) -> None:
        super().__init__()
        self.scale, self.heads = dim_head**-0.5, heads
        self.to_qkv = nn.Conv2d(dim, dim_head * heads * 3, 1, bias=False)
        self.to_out = nn.Sequential(nn.Conv2d(dim_head * heads, dim, 1), nn.GroupNorm(1, dim))

    def forward(self, x: Tensor) -> Tensor:
        b, _, h, w = x.shape
        q, k, v = [t.reshape(b, self.heads, -1, h * w) for t in self.to_qkv(x).chunk(3, dim=1)]
        q, k = q.softmax(dim=-2) * self.scale, k.softmax(dim=-1)
        context = torch.einsum("b h d n, b h e n -> b h d e", k, v)
        out = torch.einsum("b h d e, b h d n -> b h e n", context, q)
        attended: Tensor = self.to_out(out.reshape(b, -1, h, w))
        return attended + x


class Unet(nn.Module):
    def __init__(self, dim: int = 8, channels: int = 1) -> None:
        super().__init__()
        self.init_conv = nn.Conv2d(channels, dim, 5, padding=2)
        time_dim = dim * 4
        self.time_mlp = nn.Sequential(
            SinusoidalPositionEmbeddings(dim),
            nn.Linear(dim, time_dim),
            nn.GELU(),
            nn.Linear(time_dim, time_dim),
        )
        self.down = nn.ModuleList([Block(dim, dim, time_dim), nn.Conv2d(dim, 2 * dim, 4, 2, 1)])
        self.mid = nn.ModuleList([Block(2 * dim, 2 * dim, time_dim), LinearAttention(2 * dim)])
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(2 * dim, dim, 3, padding=1)
        )
        self.last = Block(2 * dim, dim, time_dim)
        self.final_conv = nn.Conv2d(dim, channels, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        t = self.time_mlp(time)
        x = self.init_conv(x)
        r = self.down[0](x, t)
        x = self.mid[1](self.mid[0](self.down[1](r), t))
        x = torch.cat((self.up(x), r), dim=1)
        return self.final_conv(self.last(x, t))


betas = torch.linspace(0.0001, 0.02, timesteps) * (1000 / timesteps)
alphas = 1.0 - betas
alphas_cumprod = cast(Tensor, torch.cumprod(alphas, axis=0))  # type: ignore  # NumPy's word
alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
sqrt_recip_alphas = torch.sqrt(1.0 / alphas)
sqrt_alphas_cumprod = torch.sqrt(alphas_cumprod)
sqrt_one_minus_alphas_cumprod = torch.sqrt(1.0 - alphas_cumprod)
posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)


def extract(a: Tensor, t: Tensor, x_shape: Sequence[int]) -> Tensor:
    out = a.gather(-1, t.cpu())
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1))).to(t.device)


def p_losses(
    denoise_model: nn.Module, x_start: Tensor, t: Tensor, noise_: Tensor | None = None
) -> Tensor:
    noise_ = default(noise_, lambda: noise(*x_start.shape))
    x_noisy = (
        extract(sqrt_alphas_cumprod, t, x_start.shape) * x_start
        + extract(sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise_
    )
    return F.smooth_l1_loss(noise_, denoise_model(x_noisy, t))


@torch.no_grad()
def p_sample(model: nn.Module, x: Tensor, t: Tensor, t_index: int) -> Tensor:
    model_mean: Tensor = extract(sqrt_recip_alphas, t, x.shape) * (
        x
        - extract(betas, t, x.shape)
        * model(x, t)
        / extract(sqrt_one_minus_alphas_cumprod, t, x.shape)
    )
    if t_index == 0:
        return model_mean
    return model_mean + torch.sqrt(extract(posterior_variance, t, x.shape)) * noise(*x.shape)


model = Unet()
for p in model.parameters():
    if p.dim() > 1:
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.15, tuple(p.shape))))
    elif p.dim() == 1:
        p.data.copy_(torch.from_numpy(rng.normal(0.2, 0.1, tuple(p.shape))))
ema = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = Adam(model.parameters(), lr=2e-3)
for step in range(20):
    optimizer.zero_grad()
    batch = noise(batch_size, 1, image_size, image_size).clamp(-1, 1)
    t = torch.from_numpy(rng.integers(0, timesteps, batch_size)).long()
    loss = p_losses(model, batch, t)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for e, p in zip(ema.parameters(), model.parameters()):
            e.mul_(0.9).add_(p, alpha=0.1)
    print("loss", loss.item())
img = noise(2, 1, image_size, image_size)
for i in reversed(range(0, timesteps)):
    img = p_sample(ema, img, torch.full((2,), i, dtype=torch.long), i)
print("sample", *img[0, 0, 3].tolist())
