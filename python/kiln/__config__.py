"""torch.__config__'s names."""

from __future__ import annotations

from . import _C


def show() -> str:
    """The version, and how many threads compute.

    >>> "Kiln" in kiln.__config__.show()
    True
    """
    return f"Kiln built with:\n  - version {_C.__version__}\n  - {_C.get_num_threads()} threads\n"


def parallel_info() -> str:
    """How many threads compute.

    >>> "threads" in kiln.__config__.parallel_info()
    True
    """
    return f"threads: {_C.get_num_threads()}\n"
