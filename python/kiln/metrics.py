"""Metrics: what training and evaluation measure, under TorchMetrics' names.

    accuracy = kiln.metrics.Accuracy(task="multiclass", num_classes=10)
    for images, labels in loader:
        accuracy.update(model(images), labels)
    print(accuracy.compute())
"""

from typing import TYPE_CHECKING

from ._C import _metrics

if TYPE_CHECKING:
    from ._C._metrics import *  # noqa: F403
else:
    __all__ = [_name for _name in dir(_metrics) if not _name.startswith("_")]
    for _name in __all__:
        globals()[_name] = getattr(_metrics, _name)
    del _name
