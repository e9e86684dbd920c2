"""VGG (Simonyan and Zisserman, 2015), with torchvision's keys and options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiln import nn

from ._vision import init_convolutions, positive
from ._weights import load_weights

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import Builder

# Channels of the convolutions of each stage; a pool follows each stage.
_STAGES = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
_WIDTHS = (64, 128, 256, 512, 512)


class VGG(nn.Module):
    """`features`, a pool to 7x7, three linear layers: images [N, 3, H, W] -> [N, num_classes].

    >>> with kiln.device("meta"):
    ...     kiln.models.vgg11(num_classes=10)(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1, 10])
    """

    def __init__(
        self,
        features: nn.Module,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        positive("VGG", num_classes=num_classes)
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            init_convolutions(self)
            for layer in self.classifier:
                if isinstance(layer, nn.Linear):
                    nn.init.normal_(layer.weight, 0, 0.01)
                    nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def make_features(depth: int, batch_norm: bool = False) -> nn.Sequential:
    """The convolutions of the VGG with `depth` layers: 11, 13, 16 or 19."""
    if depth not in _STAGES:
        raise ValueError(f"VGG: depth must be one of {sorted(_STAGES)}; got {depth}")
    layers: list[nn.Module] = []
    inputs = 3
    for count, width in zip(_STAGES[depth], _WIDTHS):
        for _ in range(count):
            layers.append(nn.Conv2d(inputs, width, 3, padding=1))
            if batch_norm:
                layers.append(nn.BatchNorm2d(width))
            layers.append(nn.ReLU(inplace=True))
            inputs = width
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers)


def _builder(depth: int, batch_norm: bool) -> Builder[VGG]:
    def build(*, weights: Any = None, progress: bool = True, **options: Any) -> VGG:
        return load_weights(VGG(make_features(depth, batch_norm), **options), weights)

    name = f"vgg{depth}" + ("_bn" if batch_norm else "")
    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""{name}: a VGG; see the class for the options.

    weights: None, a state dict, or the name of a file that holds one.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.{name}(num_classes=10)
    ...     net(kiln.zeros(1, 3, 224, 224)).shape
    kiln.Size([1, 10])
    """
    return build


vgg11, vgg11_bn = _builder(11, False), _builder(11, True)
vgg13, vgg13_bn = _builder(13, False), _builder(13, True)
vgg16, vgg16_bn = _builder(16, False), _builder(16, True)
vgg19, vgg19_bn = _builder(19, False), _builder(19, True)
