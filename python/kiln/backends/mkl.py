"""MKL: is not there; Kiln's own kernels do its work."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
