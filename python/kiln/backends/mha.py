"""The fast path of nn.MultiheadAttention: kept, and changes nothing."""

_enabled = True


def get_fastpath_enabled():
    """What was set."""
    return _enabled


def set_fastpath_enabled(value):
    """Kept, and changes nothing."""
    global _enabled
    _enabled = bool(value)
