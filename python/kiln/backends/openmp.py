"""OpenMP: is not there; ops run on Kiln's own pool of threads."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
