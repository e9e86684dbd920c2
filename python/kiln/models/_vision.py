"""Blocks that several vision models consist of, under torchvision's keys."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln
from kiln import nn

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import ModuleFactory


def make_divisible(value: float, divisor: int, min_value: int | None = None) -> int:
    """The multiple of divisor next to value, which is at most a tenth less."""
    rounded = max(min_value or divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def positive(model: str, **options: Any) -> None:
    """Each option must be an int of at least 1."""
    for name, value in options.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{model}: {name} must be an int of at least 1; got {value!r}")


class ConvNormActivation(nn.Sequential):
    """A convolution that keeps the size at stride 1, a norm, and an activation; `None` leaves one
    out."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        norm_layer: ModuleFactory | None = nn.BatchNorm2d,
        activation_layer: ModuleFactory | None = nn.ReLU,
        dilation: int = 1,
        bias: bool | None = None,
    ) -> None:
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        if bias is None:
            bias = norm_layer is None
        layers: list[nn.Module] = [
            nn.Conv2d(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias=bias,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(inplace=True))
        super().__init__(*layers)
        self.out_channels = out_channels


class SqueezeExcitation(nn.Module):
    """Scales each channel by what two 1x1 convolutions make of all channels' means (Hu et al.,
    2018)."""

    fusable = (("fc1", "activation"), ("fc2", "scale_activation"))

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: ModuleFactory = nn.ReLU,
        scale_activation: ModuleFactory = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        scale = self.fc2(self.activation(self.fc1(self.avgpool(input))))
        return self.scale_activation(scale) * input


class StochasticDepth(nn.Module):
    """While training sets samples ("row") or the whole batch ("batch") to 0 with probability p, and
    divides the rest by 1 - p (Huang et al., 2016)."""

    def __init__(self, p: float, mode: str = "row") -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"StochasticDepth: p must be from 0 to 1; got {p}")
        if mode not in ("row", "batch"):
            raise ValueError(f"StochasticDepth: mode must be 'row' or 'batch'; got {mode!r}")
        self.p = p
        self.mode = mode

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return input
        rows = input.shape[0] if self.mode == "row" else 1
        keep = 1.0 - self.p
        shape = (rows,) + (1,) * (input.dim() - 1)
        noise = kiln.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(keep)
        return input * (noise / keep if keep > 0.0 else noise)

    def extra_repr(self) -> str:
        return f"p={self.p}, mode={self.mode}"


class LayerNorm2d(nn.LayerNorm):
    """A LayerNorm over the channels of [N, C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def init_convolutions(model: nn.Module, mode: str = "fan_out", nonlinearity: str = "relu") -> None:
    """Kaiming's initial values of convolutions, ones and zeros of norms."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity=nonlinearity)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)


def init_truncated_normal(layer: nn.Module) -> None:
    """LeCun's initial values of a linear layer or convolution, cut off at two deviations."""
    fan_in = math.prod(layer.weight.shape[1:])
    nn.init.trunc_normal_(layer.weight, std=math.sqrt(1 / fan_in))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
