"""MLP and LeNet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiln import nn

from ._vision import positive
from ._weights import load_weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from .._typing import ModuleFactory


class MLP(nn.Sequential):
    """Linear layers of the given widths, each but the last followed by a norm, an activation and
    dropout: [.., in_channels] -> [.., hidden_channels[-1]]. Keys as torchvision.ops.MLP has them.

    norm_layer, activation_layer: classes, None for none. inplace: of activations and dropout. bias:
    whether layers have one.

    >>> kiln.models.MLP(3, [8, 2])(kiln.zeros(1, 3)).shape
    kiln.Size([1, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: Sequence[int],
        norm_layer: ModuleFactory | None = None,
        activation_layer: ModuleFactory = nn.ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        if not hidden_channels:
            raise ValueError("MLP: hidden_channels must name at least one width; got none")
        widths = [in_channels, *hidden_channels]
        positive("MLP", **{f"width {i}": width for i, width in enumerate(widths)})
        options = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
            layers.append(nn.Linear(inputs, outputs, bias=bias))
            if i + 2 < len(widths):
                if norm_layer is not None:
                    layers.append(norm_layer(outputs))
                layers.append(activation_layer(**options))
            layers.append(nn.Dropout(dropout, **options))
        super().__init__(*layers)


class LeNet(nn.Module):
    """LeNet-5 (LeCun et al., 1998) as it is taught today, with max pools and ReLU: images
    [N, in_channels, 28 or 32, same] -> [N, num_classes].

    >>> kiln.models.LeNet()(kiln.zeros(1, 1, 28, 28)).shape
    kiln.Size([1, 10])
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 1) -> None:
        super().__init__()
        positive("LeNet", num_classes=num_classes, in_channels=in_channels)
        self.conv1 = nn.Conv2d(in_channels, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] == 28:
            x = nn.functional.pad(x, (2, 2, 2, 2))
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


def mlp(
    in_channels: int, hidden_channels: Sequence[int], *, weights: Any = None, **options: Any
) -> MLP:
    """An MLP; see the class for the options.

    in_channels, hidden_channels: the widths. weights: None, a state dict, or the name of a file
    that holds one.

    >>> kiln.models.mlp(3, [8, 2])(kiln.zeros(1, 3)).shape
    kiln.Size([1, 2])
    """
    return load_weights(MLP(in_channels, hidden_channels, **options), weights)


def lenet(*, weights: Any = None, **options: Any) -> LeNet:
    """A LeNet; see the class for the options.

    >>> kiln.models.lenet()(kiln.zeros(1, 1, 28, 28)).shape
    kiln.Size([1, 10])
    """
    return load_weights(LeNet(**options), weights)
