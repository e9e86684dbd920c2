"""torch.serialization's names. kiln.load makes no objects of classes that a file names, so that there
is nothing to allow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._io import load as load, save as save

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip

_allowed: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Adds safe_globals, classes and functions, to get_safe_globals(). load() does not look at them: a
    file that needs them is refused as before.

    >>> kiln.serialization.add_safe_globals([dict])
    >>> kiln.serialization.get_safe_globals()
    [<class 'dict'>]
    >>> kiln.serialization.clear_safe_globals()
    """
    _allowed.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """What was added.

    >>> kiln.serialization.get_safe_globals()
    []
    """
    return list(_allowed)


def clear_safe_globals() -> None:
    """Removes what was added.

    >>> kiln.serialization.clear_safe_globals()
    """
    _allowed.clear()


class safe_globals:  # noqa: N801  PyTorch's name
    """add_safe_globals() within a with block.

    safe_globals: what is added.

    >>> with kiln.serialization.safe_globals([dict]):
    ...     kiln.serialization.get_safe_globals()
    [<class 'dict'>]
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._new = list(safe_globals)

    def __enter__(self) -> None:
        self._before = list(_allowed)
        add_safe_globals(self._new)

    def __exit__(self, *error: object) -> None:
        _allowed[:] = self._before
