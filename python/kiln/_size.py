"""kiln.Size: the shape of a tensor, a tuple that also knows its product."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, SupportsIndex, overload


class Size(tuple[int, ...]):
    """The sizes of a tensor's dims.

    >>> kiln.Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: SupportsIndex) -> int: ...
        @overload
        def __getitem__(self, index: slice) -> Size: ...
        def __getitem__(self, index: Any) -> Any: ...
    else:

        def __getitem__(self, index):
            item = tuple.__getitem__(self, index)
            return Size(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"kiln.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)


Size.__module__ = "kiln"
