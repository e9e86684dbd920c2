"""kiln.Size: the shape of a tensor, a tuple that also knows its product."""

import math


class Size(tuple):
    """The sizes of a tensor's dims."""

    __slots__ = ()

    def numel(self):
        """The number of elements."""
        return math.prod(self)

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times):
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self):
        return f"kiln.Size([{', '.join(map(str, self))}])"

    def __reduce__(self):
        return Size, (tuple(self),)


Size.__module__ = "kiln"
