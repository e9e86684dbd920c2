"""torch.mps's names. There is no such device here."""

from __future__ import annotations


def is_available() -> bool:
    """False.

    >>> kiln.mps.is_available()
    False
    """
    return False


def device_count() -> int:
    """0.

    >>> kiln.mps.device_count()
    0
    """
    return 0


def empty_cache() -> None:
    """Does nothing.

    >>> kiln.mps.empty_cache()
    """


def synchronize() -> None:
    """Does nothing.

    >>> kiln.mps.synchronize()
    """


def manual_seed(seed: int) -> None:
    """Does nothing: kiln.manual_seed seeds all devices.

    >>> kiln.mps.manual_seed(0)
    """
