"""oneDNN: is not there; Kiln's own kernels do its work. Its settings are kept and change nothing."""

from ._settings import kept as _kept

enabled = True
deterministic = False
allow_tf32 = True


def is_available():
    """False."""
    return False


def flags(enabled=False, deterministic=False, allow_tf32=True):
    """These settings until the with statement ends."""
    changes = {"enabled": enabled, "deterministic": deterministic, "allow_tf32": allow_tf32}
    return _kept(globals(), changes)
