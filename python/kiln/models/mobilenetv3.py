"""MobileNetV3 (Howard et al., 2019), with torchvision's keys and options."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kiln import nn

from ._vision import (
    ConvNormActivation,
    SqueezeExcitation,
    init_convolutions,
    make_divisible,
    positive,
)
from ._weights import load_weights

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import ModuleFactory

# kernel, expanded channels, channels, squeeze and excitation, hard swish, stride
_LARGE = [
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
]
_SMALL = [
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
]
_TABLES = {"large": (_LARGE, 1280, 12), "small": (_SMALL, 1024, 8)}


class InvertedResidual(nn.Module):
    """Expands the channels, convolves each, squeezes and excites, projects; adds the input where
    the shape is the same."""

    def __init__(
        self,
        inputs: int,
        kernel: int,
        expanded: int,
        outputs: int,
        use_se: bool,
        use_hs: bool,
        stride: int,
        dilation: int,
        norm_layer: ModuleFactory,
    ) -> None:
        super().__init__()
        self.use_res_connect = stride == 1 and inputs == outputs
        activation = nn.Hardswish if use_hs else nn.ReLU
        parts: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation}
        layers: list[nn.Module] = []
        if expanded != inputs:
            layers.append(ConvNormActivation(inputs, expanded, 1, **parts))
        layers.append(
            ConvNormActivation(
                expanded,
                expanded,
                kernel,
                1 if dilation > 1 else stride,
                groups=expanded,
                dilation=dilation,
                **parts,
            )
        )
        if use_se:
            squeezed = make_divisible(expanded // 4, 8)
            layers.append(SqueezeExcitation(expanded, squeezed, scale_activation=nn.Hardsigmoid))
        layers.append(
            ConvNormActivation(expanded, outputs, 1, norm_layer=norm_layer, activation_layer=None)
        )
        self.block = nn.Sequential(*layers)

    def forward(self, input: Tensor) -> Tensor:
        out = self.block(input)
        if self.use_res_connect:
            out += input
        return out


class MobileNetV3(nn.Module):
    """arch "large" or "small": images [N, 3, H, W] -> [N, num_classes].

    dropout: before the last layer. width_mult: a factor of all widths. reduced_tail: half the
    channels at the end. dilated: the last stage keeps its size. norm_layer: a class.

    >>> with kiln.device("meta"):
    ...     kiln.models.MobileNetV3("small", num_classes=10)(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1, 10])
    """

    def __init__(
        self,
        arch: str,
        num_classes: int = 1000,
        dropout: float = 0.2,
        width_mult: float = 1.0,
        reduced_tail: bool = False,
        dilated: bool = False,
        norm_layer: ModuleFactory | None = None,
    ) -> None:
        super().__init__()
        positive("MobileNetV3", num_classes=num_classes)
        if arch not in _TABLES:
            raise ValueError(f"MobileNetV3: arch must be 'large' or 'small'; got {arch!r}")
        if not width_mult > 0:
            raise ValueError(f"MobileNetV3: width_mult must be above 0; got {width_mult}")
        table, last_channels, tail = _TABLES[arch]
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)

        def width(channels):
            return make_divisible(channels * width_mult, 8)

        reduce = 2 if reduced_tail else 1
        inputs = width(16)
        first: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.Hardswish}
        features: list[nn.Module] = [ConvNormActivation(3, inputs, 3, 2, **first)]
        for i, (kernel, expanded, outputs, use_se, use_hs, stride) in enumerate(table):
            if i >= tail:
                outputs //= reduce
            if i > tail:
                expanded //= reduce
            dilation = 2 if dilated and i >= tail else 1
            features.append(
                InvertedResidual(
                    inputs,
                    kernel,
                    width(expanded),
                    width(outputs),
                    use_se,
                    use_hs,
                    stride,
                    dilation,
                    norm_layer,
                )
            )
            inputs = width(outputs)
        features.append(ConvNormActivation(inputs, 6 * inputs, 1, **first))
        last = width(last_channels // reduce)
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * inputs, last),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last, num_classes),
        )
        init_convolutions(self, nonlinearity="linear")
        for layer in (self.classifier[0], self.classifier[3]):
            nn.init.normal_(layer.weight, 0, 0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def mobilenet_v3_large(
    *, weights: Any = None, progress: bool = True, **options: Any
) -> MobileNetV3:
    """The large MobileNetV3; see the class for the options.

    >>> with kiln.device("meta"):
    ...     kiln.models.mobilenet_v3_large(num_classes=10)(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1, 10])
    """
    return load_weights(MobileNetV3("large", **options), weights)


def mobilenet_v3_small(
    *, weights: Any = None, progress: bool = True, **options: Any
) -> MobileNetV3:
    """The small MobileNetV3; see the class for the options.

    >>> with kiln.device("meta"):
    ...     kiln.models.mobilenet_v3_small(num_classes=10)(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1, 10])
    """
    return load_weights(MobileNetV3("small", **options), weights)
