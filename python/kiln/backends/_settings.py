"""Settings that are kept, and put back."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@contextlib.contextmanager
def kept(settings: dict[str, Any], changes: dict[str, Any]) -> Iterator[None]:
    """Changes these settings of a module's globals until the with statement ends."""
    before = {name: settings[name] for name in changes}
    settings.update(changes)
    try:
        yield
    finally:
        settings.update(before)
