"""The classes of results with several parts: kiln.return_types.max is what kiln.max(x, dim) gives.

They are tuples whose parts have names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...


def _text(self: Any) -> str:
    """Each part on a line of its own."""
    names = type(self).__match_args__
    parts = (f"{name}={part!r}" for name, part in zip(names, self))
    return f"{type(self).__module__}.{type(self).__name__}(\n" + ",\n".join(parts) + ")"


def _add(kind: Any) -> None:
    """Makes a class print its parts on lines of their own, and a name of this module."""
    setattr(kind, "__repr__", _text)
    globals()[kind.__name__] = kind
    __all__.append(kind.__name__)  # pyright: ignore[reportUnsupportedDunderAll]


__all__: list[str] = []
for _class in tuple.__subclasses__():
    if _class.__module__ == __name__:
        _add(_class)
