"""The U-Net of denoising diffusion (Ho et al., 2020), with the keys of its port to PyTorch
(ermongroup)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln
from kiln import nn
from kiln.nn import functional as F

from ._vision import positive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor


def timestep_embedding(timesteps: Tensor, dim: int) -> Tensor:
    """Sines and cosines of the steps [N] at dim / 2 frequencies: [N, dim]."""
    half = dim // 2
    scale = math.log(10000) / max(1, half - 1)
    frequency = (kiln.arange(half, dtype=kiln.float32, device=timesteps.device) * -scale).exp()
    angle = timesteps.float()[:, None] * frequency[None]
    embedding = kiln.cat([angle.sin(), angle.cos()], dim=1)
    return F.pad(embedding, (0, dim % 2)) if dim % 2 else embedding


def _norm(channels):
    return nn.GroupNorm(math.gcd(32, channels), channels, eps=1e-6)


class ResnetBlock(nn.Module):
    """Two convolutions with norms; the time joins between them."""

    def __init__(self, inputs: int, outputs: int, temb_channels: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = _norm(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.temb_proj = nn.Linear(temb_channels, outputs)
        self.norm2 = _norm(outputs)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.nin_shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x: Tensor, temb: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.temb_proj(F.silu(temb))[:, :, None, None]
        h = self.conv2(self.dropout(F.silu(self.norm2(h))))
        return h + (x if self.nin_shortcut is None else self.nin_shortcut(x))


class AttnBlock(nn.Module):
    """Each pixel attends to all pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = _norm(channels)
        self.q = nn.Conv2d(channels, channels, 1)
        self.k = nn.Conv2d(channels, channels, 1)
        self.v = nn.Conv2d(channels, channels, 1)
        self.proj_out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        q, k, v = (part(h).flatten(2).transpose(1, 2)[:, None] for part in (self.q, self.k, self.v))
        h = F.scaled_dot_product_attention(q, k, v)[:, 0].transpose(1, 2).reshape(x.shape)
        return x + self.proj_out(h)


class Downsample(nn.Module):
    """Halves the size by a convolution, or by the mean of 2 x 2 pixels."""

    def __init__(self, channels: int, with_conv: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2) if with_conv else None

    def forward(self, x: Tensor) -> Tensor:
        if self.conv is None:
            return F.avg_pool2d(x, 2, stride=2)
        return self.conv(F.pad(x, (0, 1, 0, 1)))


class Upsample(nn.Module):
    """Doubles the size; a convolution may follow."""

    def __init__(self, channels: int, with_conv: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1) if with_conv else None

    def forward(self, x: Tensor) -> Tensor:
        x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return x if self.conv is None else self.conv(x)


class DDPMUNet(nn.Module):
    """Noisy images [N, in_channels, resolution, resolution] and their steps [N] -> the noise in
    them, [N, out_ch, ..]. Widths are ch times ch_mult; pixels attend at the sizes of
    attn_resolutions.

    num_res_blocks: for each size. dropout: in training. resamp_with_conv: whether sizes change by
    convolutions.

    >>> net = kiln.models.DDPMUNet(ch=32, ch_mult=(1, 1), num_res_blocks=1, attn_resolutions=(), resolution=8)
    >>> net(kiln.zeros(1, 3, 8, 8), kiln.zeros(1, dtype=kiln.int64)).shape
    kiln.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        ch: int = 128,
        out_ch: int = 3,
        ch_mult: Sequence[int] = (1, 2, 2, 2),
        num_res_blocks: int = 2,
        attn_resolutions: Sequence[int] = (16,),
        dropout: float = 0.1,
        in_channels: int = 3,
        resolution: int = 32,
        resamp_with_conv: bool = True,
    ) -> None:
        super().__init__()
        positive(
            "DDPMUNet",
            ch=ch,
            out_ch=out_ch,
            num_res_blocks=num_res_blocks,
            in_channels=in_channels,
            resolution=resolution,
        )
        if not ch_mult or resolution % 2 ** (len(ch_mult) - 1):
            raise ValueError(
                "DDPMUNet: resolution must be a multiple of 2 ** (len(ch_mult) - 1); got "
                f"{resolution} and ch_mult {tuple(ch_mult)}"
            )
        self.ch = ch
        self.resolution = resolution
        temb = 4 * ch
        self.temb = nn.Module()
        self.temb.dense = nn.ModuleList([nn.Linear(ch, temb), nn.Linear(temb, temb)])
        self.conv_in = nn.Conv2d(in_channels, ch, 3, padding=1)
        widths = [ch * factor for factor in ch_mult]
        skips, inputs, size = [ch], ch, resolution
        self.down = nn.ModuleList()
        for i, width in enumerate(widths):
            level = nn.Module()
            level.block, level.attn = nn.ModuleList(), nn.ModuleList()
            for _ in range(num_res_blocks):
                level.block.append(ResnetBlock(inputs, width, temb, dropout))
                inputs = width
                skips.append(width)
                if size in attn_resolutions:
                    level.attn.append(AttnBlock(width))
            if i + 1 < len(widths):
                level.downsample = Downsample(width, resamp_with_conv)
                skips.append(width)
                size //= 2
            self.down.append(level)
        self.mid = nn.Module()
        self.mid.block_1 = ResnetBlock(inputs, inputs, temb, dropout)
        self.mid.attn_1 = AttnBlock(inputs)
        self.mid.block_2 = ResnetBlock(inputs, inputs, temb, dropout)
        levels: list[nn.Module] = []
        for i, width in reversed(list(enumerate(widths))):
            level = nn.Module()
            level.block, level.attn = nn.ModuleList(), nn.ModuleList()
            for _ in range(num_res_blocks + 1):
                level.block.append(ResnetBlock(inputs + skips.pop(), width, temb, dropout))
                inputs = width
                if size in attn_resolutions:
                    level.attn.append(AttnBlock(width))
            if i > 0:
                level.upsample = Upsample(width, resamp_with_conv)
                size *= 2
            levels.insert(0, level)
        self.up = nn.ModuleList(levels)
        self.norm_out = _norm(inputs)
        self.conv_out = nn.Conv2d(inputs, out_ch, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        if tuple(x.shape[-2:]) != (self.resolution, self.resolution):
            raise ValueError(
                f"DDPMUNet: expected images of {self.resolution} x {self.resolution}; got "
                f"{tuple(x.shape)}"
            )
        temb = timestep_embedding(t, self.ch).to(x.dtype)
        temb = self.temb.dense[1](F.silu(self.temb.dense[0](temb)))
        skips = [self.conv_in(x)]
        for i, level in enumerate(self.down):
            for j, block in enumerate(level.block):
                h = block(skips[-1], temb)
                skips.append(level.attn[j](h) if len(level.attn) else h)
            if i + 1 < len(self.down):
                skips.append(level.downsample(skips[-1]))
        h = self.mid.block_2(self.mid.attn_1(self.mid.block_1(skips[-1], temb)), temb)
        for i in reversed(range(len(self.up))):
            level = self.up[i]
            for j, block in enumerate(level.block):
                h = block(kiln.cat([h, skips.pop()], dim=1), temb)
                if len(level.attn):
                    h = level.attn[j](h)
            if i > 0:
                h = level.upsample(h)
        return self.conv_out(F.silu(self.norm_out(h)))


class GaussianDiffusion(nn.Module):
    """Adds noise in num_timesteps steps, and takes it away again with a model of the noise.

    beta_start, beta_end, beta_schedule: the variances of the steps, and how they go from one to the
    other.

    >>> diffusion = kiln.models.GaussianDiffusion(num_timesteps=10)
    >>> diffusion.num_timesteps
    10
    """

    def __init__(
        self,
        num_timesteps: int = 1000,
        beta_start: float = 1e-4,
        beta_end: float = 0.02,
        beta_schedule: str = "linear",
    ) -> None:
        super().__init__()
        positive("GaussianDiffusion", num_timesteps=num_timesteps)
        if beta_schedule == "linear":
            betas = kiln.linspace(beta_start, beta_end, num_timesteps, dtype=kiln.float64)
        elif beta_schedule == "cosine":  # Nichol and Dhariwal, 2021
            steps = kiln.arange(num_timesteps + 1, dtype=kiln.float64) / num_timesteps
            level = ((steps + 0.008) / 1.008 * (math.pi / 2)).cos() ** 2
            betas = (1 - level[1:] / level[:-1]).clamp(max=0.999)
        else:
            raise ValueError(
                "GaussianDiffusion: beta_schedule must be 'linear' or 'cosine'; got "
                f"{beta_schedule!r}"
            )
        self.num_timesteps = num_timesteps
        self.register_buffer("betas", betas.float())
        self.register_buffer("alphas_cumprod", (1 - betas).cumprod(0).float())

    def q_sample(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """The images x [N, ..] after t [N] steps."""
        level = self.alphas_cumprod[t].reshape(-1, *[1] * (x.dim() - 1))
        return level.sqrt() * x + (1 - level).sqrt() * noise

    def loss(
        self,
        model: Callable[..., Any],
        x: Tensor,
        t: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """The mean squared error of the noise that the model finds in x after random steps."""
        if t is None:
            t = kiln.randint(0, self.num_timesteps, (x.shape[0],), device=x.device)
        if noise is None:
            noise = kiln.randn_like(x)
        return F.mse_loss(model(self.q_sample(x, t, noise), t), noise)

    def sample(
        self,
        model: Callable[..., Any],
        shape: Sequence[int],
        steps: int | None = None,
        eta: float = 1.0,
    ) -> Tensor:
        """New images of this shape, from noise. Fewer steps skip some (Song et al., 2021); eta 0
        adds no noise on the way."""
        steps = self.num_timesteps if steps is None else steps
        if not 1 <= steps <= self.num_timesteps:
            raise ValueError(
                f"GaussianDiffusion: steps must be from 1 to {self.num_timesteps}; got {steps}"
            )
        levels = self.alphas_cumprod.tolist()
        times = [round(i * (self.num_timesteps - 1) / max(1, steps - 1)) for i in range(steps)]
        with kiln.no_grad():
            x = kiln.randn(*shape, device=self.betas.device)
            for i in reversed(range(steps)):
                level, before = levels[times[i]], levels[times[i - 1]] if i else 1.0
                noise = model(
                    x, kiln.full((shape[0],), times[i], dtype=kiln.int64, device=x.device)
                )
                clean = ((x - (1 - level) ** 0.5 * noise) / level**0.5).clamp(-1, 1)
                noise = (x - level**0.5 * clean) / (1 - level) ** 0.5
                sigma = eta * ((1 - before) / (1 - level) * (1 - level / before)) ** 0.5
                x = before**0.5 * clean + max(0.0, 1 - before - sigma**2) ** 0.5 * noise
                if sigma > 0:
                    x = x + sigma * kiln.randn_like(x)
        return x
