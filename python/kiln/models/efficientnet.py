"""EfficientNet (Tan and Le, 2019), with torchvision's keys and options."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from kiln import nn

from ._vision import (
    ConvNormActivation,
    SqueezeExcitation,
    StochasticDepth,
    init_convolutions,
    make_divisible,
    positive,
)
from ._weights import load_weights

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import Builder, ModuleFactory

# expansion, kernel, stride, input channels, output channels, blocks
_STAGES = [
    (1, 3, 1, 32, 16, 1),
    (6, 3, 2, 16, 24, 2),
    (6, 5, 2, 24, 40, 2),
    (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
]


class MBConv(nn.Module):
    """Expands the channels, convolves each, squeezes and excites, projects; adds the input where
    the shape is the same."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        inputs: int,
        outputs: int,
        stochastic_depth_prob: float,
        norm_layer: ModuleFactory,
    ) -> None:
        super().__init__()
        self.use_res_connect = stride == 1 and inputs == outputs
        parts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        expanded = make_divisible(inputs * expand_ratio, 8)
        layers: list[nn.Module] = []
        if expanded != inputs:
            layers.append(ConvNormActivation(inputs, expanded, 1, **parts))
        layers.append(
            ConvNormActivation(expanded, expanded, kernel, stride, groups=expanded, **parts)
        )
        layers.append(
            SqueezeExcitation(expanded, max(1, inputs // 4), activation=partial(nn.SiLU, True))
        )
        layers.append(
            ConvNormActivation(expanded, outputs, 1, norm_layer=norm_layer, activation_layer=None)
        )
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        out = self.block(input)
        return self.stochastic_depth(out) + input if self.use_res_connect else out


class EfficientNet(nn.Module):
    """Widths and depths of B0 times the two factors: images [N, 3, H, W] -> [N, num_classes].

    width_mult, depth_mult: the two factors. dropout: before the last layer. stochastic_depth_prob:
    how often blocks are left out in training. norm_layer: a class.

    >>> with kiln.device("meta"):
    ...     kiln.models.EfficientNet(num_classes=10)(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1, 10])
    """

    def __init__(
        self,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        dropout: float = 0.2,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: ModuleFactory | None = None,
    ) -> None:
        super().__init__()
        positive("EfficientNet", num_classes=num_classes)
        if not (width_mult > 0 and depth_mult > 0):
            raise ValueError(
                "EfficientNet: width_mult and depth_mult must be above 0; "
                f"got {width_mult} and {depth_mult}"
            )
        norm_layer = norm_layer or nn.BatchNorm2d

        def width(channels):
            return make_divisible(channels * width_mult, 8)

        parts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        counts = [math.ceil(stage[-1] * depth_mult) for stage in _STAGES]
        layers: list[nn.Module] = [ConvNormActivation(3, width(32), 3, 2, **parts)]
        made = 0
        for (ratio, kernel, stride, inputs, outputs, _), count in zip(_STAGES, counts):
            inputs, outputs = width(inputs), width(outputs)
            blocks = []
            for i in range(count):
                prob = stochastic_depth_prob * made / sum(counts)
                shape = (stride, inputs) if i == 0 else (1, outputs)
                blocks.append(MBConv(ratio, kernel, *shape, outputs, prob, norm_layer))
                made += 1
            layers.append(nn.Sequential(*blocks))
        layers.append(ConvNormActivation(outputs, 4 * outputs, 1, **parts))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(4 * outputs, num_classes)
        )
        init_convolutions(self, nonlinearity="linear")
        bound = 1 / math.sqrt(num_classes)
        nn.init.uniform_(self.classifier[1].weight, -bound, bound)
        nn.init.zeros_(self.classifier[1].bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _builder(
    name: str,
    width_mult: float,
    depth_mult: float,
    dropout: float,
    norm_layer: ModuleFactory | None = None,
) -> Builder[EfficientNet]:
    fixed = {
        "width_mult": width_mult,
        "depth_mult": depth_mult,
        "dropout": dropout,
        "norm_layer": norm_layer,
    }

    def build(*, weights: Any = None, progress: bool = True, **options: Any) -> EfficientNet:
        return load_weights(EfficientNet(**{**fixed, **options}), weights)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""{name}: an EfficientNet; see the class for the options.

    weights: None, a state dict, or the name of a file that holds one.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.{name}(num_classes=10)
    ...     net(kiln.zeros(1, 3, 224, 224)).shape
    kiln.Size([1, 10])
    """
    return build


_slow_norm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
efficientnet_b0 = _builder("efficientnet_b0", 1.0, 1.0, 0.2)
efficientnet_b1 = _builder("efficientnet_b1", 1.0, 1.1, 0.2)
efficientnet_b2 = _builder("efficientnet_b2", 1.1, 1.2, 0.3)
efficientnet_b3 = _builder("efficientnet_b3", 1.2, 1.4, 0.3)
efficientnet_b4 = _builder("efficientnet_b4", 1.4, 1.8, 0.4)
efficientnet_b5 = _builder("efficientnet_b5", 1.6, 2.2, 0.4, _slow_norm)
efficientnet_b6 = _builder("efficientnet_b6", 1.8, 2.6, 0.5, _slow_norm)
efficientnet_b7 = _builder("efficientnet_b7", 2.0, 3.1, 0.5, _slow_norm)
