"""The fast path of nn.MultiheadAttention: kept, and changes nothing."""

from __future__ import annotations

_enabled = True


def get_fastpath_enabled() -> bool:
    """What was set."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Kept, and changes nothing."""
    global _enabled
    _enabled = bool(value)
