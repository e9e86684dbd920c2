"""Learning rate schedules: each a function of the number of epochs."""

from .._C._optim import (
    CosineAnnealingLR,
    LinearLR,
    LRScheduler,
    SequentialLR,
    StepLR,
)

__all__ = ["CosineAnnealingLR", "LRScheduler", "LinearLR", "SequentialLR", "StepLR"]
