"""PyTorch's base classes of layers, for isinstance(): _BatchNorm, _ConvNd, _Loss and others.

In Kiln each layer derives from nn.Module directly. These classes know their members by name. A
program that derives a layer of its own from one gets what _bases.py has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..module import Module
from ._bases import BASES

if TYPE_CHECKING:
    from typing import Any


class _Family(type(Module)):  # type: ignore[misc]
    """A class whose instances are those of its members, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__dict__.get("members", ())) or super().__instancecheck__(
            instance
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__dict__.get("members", ())) or super().__subclasscheck__(
            subclass
        )


def _nd(*names: str) -> list[str]:
    return [f"{name}{n}d" for name in names for n in (1, 2, 3)]


_LAZY = _nd("LazyConv", "LazyConvTranspose")
_WEIGHTED = ["BCELoss", "CrossEntropyLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss"]
# file -> class -> the names of its members; None: every loss.
FAMILIES: dict[str, dict[str, list[str] | None]] = {
    "batchnorm": {
        "_BatchNorm": [*_nd("BatchNorm", "LazyBatchNorm"), "SyncBatchNorm"],
        "_NormBase": [
            *_nd("BatchNorm", "InstanceNorm", "LazyBatchNorm", "LazyInstanceNorm"),
            "SyncBatchNorm",
        ],
    },
    "instancenorm": {"_InstanceNorm": _nd("InstanceNorm", "LazyInstanceNorm")},
    "conv": {
        "_ConvNd": [*_nd("Conv", "ConvTranspose"), *_LAZY],
        "_ConvTransposeNd": _nd("ConvTranspose", "LazyConvTranspose"),
    },
    "dropout": {
        "_DropoutNd": [*_nd("Dropout"), "Dropout", "AlphaDropout", "FeatureAlphaDropout"],
    },
    "pooling": {
        "_MaxPoolNd": _nd("MaxPool"),
        "_AvgPoolNd": _nd("AvgPool"),
        "_AdaptiveAvgPoolNd": _nd("AdaptiveAvgPool"),
        "_AdaptiveMaxPoolNd": _nd("AdaptiveMaxPool"),
    },
    "rnn": {"RNNBase": ["RNN", "LSTM", "GRU"], "RNNCellBase": ["RNNCell", "LSTMCell", "GRUCell"]},
    "loss": {"_Loss": None, "_WeightedLoss": _WEIGHTED},
}


def families_of(file: str, classes: dict[str, type]) -> dict[str, type]:
    """The families of one of PyTorch's files, of the layers that have these names."""
    out: dict[str, type] = {}
    for name, members in FAMILIES.get(file, {}).items():
        if members is None:
            members = [known for known in classes if known.endswith("Loss")]
        found = tuple(classes[member] for member in members if member in classes)
        text = f"Any of {', '.join(member.__name__ for member in found)}."
        base = BASES.get(name, Module)
        out[name] = _Family(name, (base,), {"members": found, "__doc__": text})
    return out
