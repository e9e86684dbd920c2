"""U-Net (Ronneberger et al., 2015), padded, with batch norms: the keys of milesial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln import nn

from ._vision import positive
from ._weights import load_weights

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


class DoubleConv(nn.Module):
    """Two 3x3 convolutions, each with a norm and ReLU."""

    def __init__(
        self, in_channels: int, out_channels: int, mid_channels: int | None = None
    ) -> None:
        super().__init__()
        mid_channels = mid_channels or out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class Down(nn.Module):
    """Halves the size."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        return self.maxpool_conv(x)


class Up(nn.Module):
    """Doubles the size of x, pads it to the size of the skip, and joins the two."""

    def __init__(self, in_channels: int, out_channels: int, bilinear: bool) -> None:
        super().__init__()
        if bilinear:
            self.up: nn.Module = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, 2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.up(x)
        dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        x = nn.functional.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(kiln.cat([skip, x], dim=1))


class UNet(nn.Module):
    """Images [N, n_channels, H, W] -> [N, n_classes, H, W]; H and W at least 16. `base_channels`
    times 1, 2, 4, 8, 16 are the widths.

    >>> kiln.models.UNet(3, 2, base_channels=4).eval()(kiln.zeros(1, 3, 16, 16)).shape
    kiln.Size([1, 2, 16, 16])
    """

    def __init__(
        self, n_channels: int, n_classes: int, bilinear: bool = False, base_channels: int = 64
    ) -> None:
        super().__init__()
        positive("UNet", n_channels=n_channels, n_classes=n_classes, base_channels=base_channels)
        self.n_channels = n_channels
        self.n_classes = n_classes
        self.bilinear = bilinear
        c = base_channels
        half = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, c)
        self.down1 = Down(c, 2 * c)
        self.down2 = Down(2 * c, 4 * c)
        self.down3 = Down(4 * c, 8 * c)
        self.down4 = Down(8 * c, 16 * c // half)
        self.up1 = Up(16 * c, 8 * c // half, bilinear)
        self.up2 = Up(8 * c, 4 * c // half, bilinear)
        self.up3 = Up(4 * c, 2 * c // half, bilinear)
        self.up4 = Up(2 * c, c, bilinear)
        self.outc = OutConv(c, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        if min(x.shape[-2:]) < 16:
            raise ValueError(f"UNet: images must be at least 16 x 16; got {tuple(x.shape)}")
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(self.down4(x4), x4)
        return self.outc(self.up4(self.up3(self.up2(x, x3), x2), x1))


class OutConv(nn.Module):
    """A 1x1 convolution."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


def unet(n_channels: int = 3, n_classes: int = 1, *, weights: Any = None, **options: Any) -> UNet:
    """A UNet; see the class for the options.

    n_channels, n_classes: before and behind. weights: None, a state dict, or the name of a file
    that holds one.

    >>> kiln.models.unet(base_channels=4).eval()(kiln.zeros(1, 3, 16, 16)).shape
    kiln.Size([1, 1, 16, 16])
    """
    return load_weights(UNet(n_channels, n_classes, **options), weights)
