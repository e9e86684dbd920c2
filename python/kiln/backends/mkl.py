"""MKL: is not there; Kiln's own kernels do its work."""


def is_available():
    """False."""
    return False
