"""Signals: the windows of torch.signal."""

from . import windows as windows

__all__ = ["windows"]
