"""cuDNN: is not there. Its settings are kept and change nothing."""

from ._settings import kept as _kept

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = False


def is_available():
    """False."""
    return False


def version():
    """None."""
    return None


def is_acceptable(tensor):
    """False."""
    return False


def flags(
    enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True
):
    """These settings until the with statement ends."""
    changes = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    return _kept(globals(), changes)
