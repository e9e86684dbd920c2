"""The types of layouts and memory formats, whose constants are texts here: for annotations and
isinstance()."""

from __future__ import annotations

__all__ = ["layout", "memory_format"]


class _OneOf(type):
    """Types that have a few texts as their instances."""

    _texts: frozenset[str]

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, str) and x in cls._texts

    def __call__(cls, *args: object) -> None:
        raise TypeError(f"{cls.__name__}: expected one of the constants {sorted(cls._texts)}")


class layout(metaclass=_OneOf):  # noqa: N801  PyTorch's name
    """The type of kiln.strided and its like, which are texts.

    >>> isinstance(kiln.zeros(1).layout, kiln.layout)
    True
    """

    _texts = frozenset(
        ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
    )


class memory_format(metaclass=_OneOf):  # noqa: N801  PyTorch's name
    """The type of kiln.channels_last and its like, which are texts.

    >>> isinstance(kiln.channels_last, kiln.memory_format)
    True
    """

    _texts = frozenset(
        ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"]
    )


for _class in (layout, memory_format):
    _class.__module__ = "kiln"
del _class
