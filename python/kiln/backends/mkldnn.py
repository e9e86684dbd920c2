"""oneDNN: is not there; Kiln's own kernels do its work. Its settings are kept and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._settings import kept as _kept

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """False."""
    return False


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> AbstractContextManager[None]:
    """These settings until the with statement ends."""
    changes = {"enabled": enabled, "deterministic": deterministic, "allow_tf32": allow_tf32}
    return _kept(globals(), changes)
