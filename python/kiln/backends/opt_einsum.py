"""opt_einsum: is not there."""

from __future__ import annotations

enabled = False
strategy = None


def is_available() -> bool:
    """False."""
    return False
