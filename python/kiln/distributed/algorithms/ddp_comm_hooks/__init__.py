"""Communication hooks for DistributedDataParallel."""

from . import default_hooks

__all__ = ["default_hooks"]
