"""OpenMP: is not there; ops run on Kiln's own pool of threads."""


def is_available():
    """False."""
    return False
