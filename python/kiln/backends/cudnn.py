"""cuDNN: is not there. Its settings are kept and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._settings import kept as _kept

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = False


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """False."""
    return False


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> AbstractContextManager[None]:
    """These settings until the with statement ends."""
    changes = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    return _kept(globals(), changes)
