"""Names of PyTorch's dtypes that no tensor has here. Programs compare them, and keep them in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from . import _C, errors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from ._C import dtype as _DType

__all__ = [
    "chalf", "complex32", "float4_e2m1fn_x2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "uint16", "uint32", "uint64",
]  # fmt: skip


def _refuse(name: str, op: str) -> NoReturn:
    raise errors.DTypeError(
        f"{op}: no tensor has the dtype {name}, which is only a name here; expected another, such as "
        "kiln.uint8, kiln.int32 or kiln.bfloat16"
    )


class DTypeWithoutTensors:
    """A dtype that is only a name: it can be compared, printed and kept, and makes no tensors.

    It is an instance of kiln.dtype for isinstance().

    >>> kiln.float32 in (kiln.float8_e4m3fn, kiln.float8_e5m2)
    False
    >>> kiln.uint16, kiln.uint16.itemsize, isinstance(kiln.uint16, kiln.dtype)
    (kiln.uint16, 2, True)
    """

    __slots__ = ("_name", "_real", "is_complex", "is_floating_point", "is_signed", "itemsize")

    def __init__(self, name: str, itemsize: int) -> None:
        self._name, self.itemsize = name, itemsize
        self.is_floating_point, self.is_complex = name[0] == "f", name[0] == "c"
        self.is_signed = name[0] != "u" and name != "float8_e8m0fnu"
        self._real = _C.float16 if self.is_complex else self

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that isinstance() says yes
        return _C.dtype

    def __repr__(self) -> str:
        return f"kiln.{self._name}"

    def __reduce__(self) -> tuple[Any, ...]:
        from ._pickle import dtype

        return dtype, (self._name,)

    def __copy__(self) -> DTypeWithoutTensors:
        return self

    def __deepcopy__(self, memo: Any) -> DTypeWithoutTensors:
        return self

    def to_real(self) -> Any:
        """The dtype of the parts of a complex dtype; else itself."""
        return self._real

    def to_complex(self) -> Any:
        """complex32 itself; for others DTypeError: there is no complex dtype of such parts."""
        return self if self.is_complex else _refuse(repr(self), "to_complex")


def _named(name: str, itemsize: int) -> _DType:
    return cast("_DType", DTypeWithoutTensors(name, itemsize))


uint16, uint32, uint64 = _named("uint16", 2), _named("uint32", 4), _named("uint64", 8)
float8_e4m3fn, float8_e4m3fnuz = _named("float8_e4m3fn", 1), _named("float8_e4m3fnuz", 1)
float8_e5m2, float8_e5m2fnuz = _named("float8_e5m2", 1), _named("float8_e5m2fnuz", 1)
float8_e8m0fnu, float4_e2m1fn_x2 = _named("float8_e8m0fnu", 1), _named("float4_e2m1fn_x2", 1)
complex32 = chalf = _named("complex32", 4)

BY_NAME = {name: globals()[name] for name in __all__ if name != "chalf"}


def refuse_among(values: Iterable[Any], op: str) -> None:
    """DTypeError if one of a call's arguments is such a dtype."""
    for value in values:
        if type(value) is DTypeWithoutTensors:
            _refuse(repr(value), op)
