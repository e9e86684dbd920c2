"""The ops of kiln.library by their names: kiln.ops.mylib.sin is the op "mylib::sin".

>>> @kiln.library.custom_op("pages::triple", mutates_args=())
... def triple(x: kiln.Tensor) -> kiln.Tensor:
...     return x * 3
>>> kiln.ops.pages.triple(kiln.ones(1))
tensor([3.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class _Namespace:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        from .library import _ops

        if f"{self._name}::{name}" not in _ops:
            raise AttributeError(
                f"kiln.ops.{self._name} has no op {name!r}; kiln.library.custom_op makes one"
            )
        return _ops[f"{self._name}::{name}"]

    def __repr__(self) -> str:
        return f"<kiln.ops.{self._name}>"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
