"""ConvNeXt (Liu et al., 2022), with torchvision's keys and options."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import kiln
from kiln import nn

from ._vision import ConvNormActivation, LayerNorm2d, StochasticDepth, positive
from ._weights import load_weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from .._typing import Builder, ModuleFactory


class Permute(nn.Module):
    """`permute` as a module."""

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(*self.dims)


class CNBlock(nn.Module):
    """A 7x7 convolution of each channel, a norm, two linear layers over the channels, a scale."""

    def __init__(
        self,
        dim: int,
        layer_scale: float,
        stochastic_depth_prob: float,
        norm_layer: ModuleFactory | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim),
            Permute([0, 2, 3, 1]),
            norm_layer(dim),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(kiln.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


class ConvNeXt(nn.Module):
    """Stages of `depths[i]` blocks with `dims[i]` channels: images [N, 3, H, W] -> [N,
    num_classes].

    stochastic_depth_prob: how often blocks are left out in training. layer_scale: the first value
    of the scales. norm_layer: a class.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.ConvNeXt([1, 1, 1, 1], [8, 16, 32, 64], num_classes=10)
    ...     net(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1, 10])
    """

    def __init__(
        self,
        depths: Sequence[int],
        dims: Sequence[int],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
        norm_layer: ModuleFactory | None = None,
    ) -> None:
        super().__init__()
        positive("ConvNeXt", num_classes=num_classes)
        if not depths or len(depths) != len(dims):
            raise ValueError(
                "ConvNeXt: depths and dims must have one number for each stage; got "
                f"{depths} and {dims}"
            )
        norm = norm_layer or partial(LayerNorm2d, eps=1e-6)
        layers: list[nn.Module] = [
            ConvNormActivation(
                3, dims[0], 4, 4, padding=0, norm_layer=norm, activation_layer=None, bias=True
            )
        ]
        made, total = 0, sum(depths)
        for i, (depth, dim) in enumerate(zip(depths, dims)):
            blocks = []
            for _ in range(depth):
                prob = stochastic_depth_prob * made / max(1, total - 1)
                blocks.append(CNBlock(dim, layer_scale, prob))
                made += 1
            layers.append(nn.Sequential(*blocks))
            if i + 1 < len(dims):
                layers.append(nn.Sequential(norm(dim), nn.Conv2d(dim, dims[i + 1], 2, stride=2)))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            norm(dims[-1]), nn.Flatten(1), nn.Linear(dims[-1], num_classes)
        )
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))


def _builder(
    name: str, depths: Sequence[int], dims: Sequence[int], stochastic_depth_prob: float
) -> Builder[ConvNeXt]:
    def build(*, weights: Any = None, progress: bool = True, **options: Any) -> ConvNeXt:
        options = {"stochastic_depth_prob": stochastic_depth_prob, **options}
        return load_weights(ConvNeXt(depths, dims, **options), weights)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""{name}: a ConvNeXt; see the class for the options.

    weights: None, a state dict, or the name of a file that holds one.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.{name}(num_classes=10)
    ...     net(kiln.zeros(1, 3, 224, 224)).shape
    kiln.Size([1, 10])
    """
    return build


convnext_atto = _builder("convnext_atto", [2, 2, 6, 2], [40, 80, 160, 320], 0.1)
convnext_tiny = _builder("convnext_tiny", [3, 3, 9, 3], [96, 192, 384, 768], 0.1)
convnext_small = _builder("convnext_small", [3, 3, 27, 3], [96, 192, 384, 768], 0.4)
convnext_base = _builder("convnext_base", [3, 3, 27, 3], [128, 256, 512, 1024], 0.5)
convnext_large = _builder("convnext_large", [3, 3, 27, 3], [192, 384, 768, 1536], 0.5)
