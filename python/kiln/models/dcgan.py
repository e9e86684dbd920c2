"""DCGAN (Radford et al., 2016): two networks for images of 64 x 64, with the keys of PyTorch's
example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiln import nn

from ._vision import positive

if TYPE_CHECKING:
    from .._C import Tensor


class Generator(nn.Module):
    """Noise [N, nz, 1, 1] -> images [N, nc, 64, 64], from -1 to 1.

    >>> with kiln.device("meta"):
    ...     kiln.models.Generator()(kiln.zeros(1, 100, 1, 1)).shape
    kiln.Size([1, 3, 64, 64])
    """

    def __init__(self, nz: int = 100, ngf: int = 64, nc: int = 3) -> None:
        super().__init__()
        positive("Generator", nz=nz, ngf=ngf, nc=nc)
        layers: list[nn.Module] = [nn.ConvTranspose2d(nz, 8 * ngf, 4, 1, 0, bias=False)]
        for width in (8 * ngf, 4 * ngf, 2 * ngf, ngf):
            layers += [nn.BatchNorm2d(width), nn.ReLU(True)]
            outputs = width // 2 if width > ngf else nc
            layers.append(nn.ConvTranspose2d(width, outputs, 4, 2, 1, bias=False))
        self.main = nn.Sequential(*layers, nn.Tanh())
        self.apply(weights_init)

    def forward(self, input: Tensor) -> Tensor:
        return self.main(input)


class Discriminator(nn.Module):
    """Images [N, nc, 64, 64] -> how real each looks, [N], from 0 to 1.

    >>> with kiln.device("meta"):
    ...     kiln.models.Discriminator()(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1])
    """

    def __init__(self, nc: int = 3, ndf: int = 64) -> None:
        super().__init__()
        positive("Discriminator", nc=nc, ndf=ndf)
        layers = [nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for width in (ndf, 2 * ndf, 4 * ndf):
            layers += [
                nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
                nn.BatchNorm2d(2 * width),
                nn.LeakyReLU(0.2, inplace=True),
            ]
        layers += [nn.Conv2d(8 * ndf, 1, 4, 1, 0, bias=False), nn.Sigmoid()]
        self.main = nn.Sequential(*layers)
        self.apply(weights_init)

    def forward(self, input: Tensor) -> Tensor:
        return self.main(input).view(-1)


def weights_init(module: nn.Module) -> None:
    """The paper's initial values; for `apply`."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)
