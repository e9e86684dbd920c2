"""ResNet (He et al., 2016), ResNeXt and wide ResNet, with torchvision's keys and options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiln import nn

from ._vision import init_convolutions, positive
from ._weights import load_weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from .._typing import Builder, ModuleFactory


def _conv3x3(inputs, outputs, stride=1, groups=1, dilation=1):
    return nn.Conv2d(
        inputs, outputs, 3, stride, padding=dilation, dilation=dilation, groups=groups, bias=False
    )


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around which the input is added.

    inplanes, planes: channels before and within. stride: of the first convolution. downsample: a
    module on the input's way, or None. groups, base_width, dilation: as Bottleneck takes them.
    norm_layer: a class.

    >>> kiln.models.BasicBlock(8, 8)(kiln.zeros(1, 8, 4, 4)).shape
    kiln.Size([1, 8, 4, 4])
    """

    expansion = 1
    fusable = (("conv1", "bn1"), ("conv2", "bn2"))

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: ModuleFactory = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError(
                "BasicBlock: groups must be 1 and width_per_group 64; Bottleneck has others"
            )
        if dilation > 1:
            raise NotImplementedError("BasicBlock: dilation must be 1; Bottleneck has others")
        self.conv1 = _conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + shortcut)


class Bottleneck(nn.Module):
    """A 3x3 convolution between two of 1x1, around which the input is added. The stride is the 3x3
    convolution's.

    inplanes, planes: channels before and within. downsample: a module on the input's way, or None.
    groups, base_width, dilation: of the 3x3 convolution. norm_layer: a class.

    >>> kiln.models.Bottleneck(16, 4)(kiln.zeros(1, 16, 4, 4)).shape
    kiln.Size([1, 16, 4, 4])
    """

    expansion = 4
    fusable = (("conv1", "bn1"), ("conv2", "bn2"), ("conv3", "bn3"))

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: ModuleFactory = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        width = int(planes * (base_width / 64)) * groups
        self.conv1 = nn.Conv2d(inplanes, width, 1, bias=False)
        self.bn1 = norm_layer(width)
        self.conv2 = _conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = nn.Conv2d(width, planes * self.expansion, 1, bias=False)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + shortcut)


class ResNet(nn.Module):
    """Four stages of `layers[i]` blocks: images [N, 3, H, W] -> [N, num_classes].

    block: BasicBlock or Bottleneck. zero_init_residual: the last norm of each block begins with 0.
    groups, width_per_group: of the 3x3 convolutions. replace_stride_with_dilation: three flags, of
    the last stages. norm_layer: a class.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.ResNet(kiln.models.BasicBlock, [1, 1, 1, 1], num_classes=10)
    ...     net(kiln.zeros(1, 3, 64, 64)).shape
    kiln.Size([1, 10])
    """

    fusable = (("conv1", "bn1"),)

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: ModuleFactory | None = None,
    ) -> None:
        super().__init__()
        positive("ResNet", num_classes=num_classes, groups=groups, width_per_group=width_per_group)
        if len(layers) != 4:
            raise ValueError(f"ResNet: layers must have 4 numbers; got {len(layers)}")
        dilate = [False] + list(replace_stride_with_dilation or [False] * 3)
        if len(dilate) != 4:
            raise ValueError(
                f"ResNet: replace_stride_with_dilation must have 3 entries; got {len(dilate) - 1}"
            )
        norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        self.groups = groups
        self.base_width = width_per_group
        self._norm_layer = norm_layer
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        for i in range(4):
            stage = self._stage(block, 64 * 2**i, layers[i], 1 if i == 0 else 2, dilate[i])
            setattr(self, f"layer{i + 1}", stage)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        init_convolutions(self)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, (BasicBlock, Bottleneck)):
                    last = module.bn2 if isinstance(module, BasicBlock) else module.bn3
                    nn.init.zeros_(last.weight)

    def _stage(self, block, planes, count, stride, dilate):
        before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        outputs = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != outputs:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, outputs, 1, stride, bias=False), self._norm_layer(outputs)
            )
        rest = (self.groups, self.base_width)
        blocks = [block(self.inplanes, planes, stride, downsample, *rest, before, self._norm_layer)]
        self.inplanes = outputs
        for _ in range(1, count):
            blocks.append(block(outputs, planes, 1, None, *rest, self.dilation, self._norm_layer))
        return nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def _builder(
    name: str, block: type[BasicBlock] | type[Bottleneck], layers: Sequence[int], **fixed: Any
) -> Builder[ResNet]:
    def build(*, weights: Any = None, progress: bool = True, **options: Any) -> ResNet:
        return load_weights(ResNet(block, layers, **{**fixed, **options}), weights)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""{name}: a ResNet; see the class for the options.

    weights: None, a state dict, or the name of a file that holds one.

    >>> with kiln.device("meta"):
    ...     net = kiln.models.{name}(num_classes=10)
    ...     net(kiln.zeros(1, 3, 224, 224)).shape
    kiln.Size([1, 10])
    """
    return build


resnet18 = _builder("resnet18", BasicBlock, [2, 2, 2, 2])
resnet34 = _builder("resnet34", BasicBlock, [3, 4, 6, 3])
resnet50 = _builder("resnet50", Bottleneck, [3, 4, 6, 3])
resnet101 = _builder("resnet101", Bottleneck, [3, 4, 23, 3])
resnet152 = _builder("resnet152", Bottleneck, [3, 8, 36, 3])
resnext50_32x4d = _builder(
    "resnext50_32x4d", Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4
)
wide_resnet50_2 = _builder("wide_resnet50_2", Bottleneck, [3, 4, 6, 3], width_per_group=128)
