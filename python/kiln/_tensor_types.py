"""PyTorch's names for tensors of one dtype: classes such as FloatTensor, and texts for type()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C, _dtypes, errors
from ._size import Size

if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor, dtype


class _OfDtype(type):
    """Types that are tensors of one dtype."""

    def __instancecheck__(cls, x):
        return isinstance(x, _C.Tensor) and x.dtype == cls.dtype

    def __call__(cls, *args):
        if args and all(isinstance(n, int) for n in args) or len(args) == 1 and isinstance(args[0], Size):
            return _C.empty(*args, dtype=cls.dtype)
        if len(args) == 1 and isinstance(args[0], _C.Tensor):
            if args[0].dtype != cls.dtype:
                raise TypeError(f"{cls.__name__}: expected {cls.dtype}; got {args[0].dtype}")
            return args[0]
        return _C.tensor(*(args or ([],)), dtype=cls.dtype)


def _of_dtype(name, dtype):
    doc = f"""Tensors of {dtype}: isinstance() knows them; called with sizes or with values.

>>> kiln.{name}([1, 0]).dtype
{dtype}
>>> isinstance(kiln.zeros(1, dtype={dtype}), kiln.{name})
True"""
    return _OfDtype(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "kiln"})


CLASSES = {
    name: _of_dtype(name, dtype)
    for name, dtype in {
        "FloatTensor": _C.float32, "DoubleTensor": _C.float64, "HalfTensor": _C.float16,
        "BFloat16Tensor": _C.bfloat16, "LongTensor": _C.int64, "IntTensor": _C.int32,
        "ShortTensor": _C.int16, "CharTensor": _C.int8, "ByteTensor": _C.uint8,
        "BoolTensor": _C.bool_,
    }.items()
}  # fmt: skip
if TYPE_CHECKING:

    class _Typed(_C.Tensor):
        def __init__(self, *values: Any) -> None: ...

    class FloatTensor(_Typed): ...

    class DoubleTensor(_Typed): ...

    class HalfTensor(_Typed): ...

    class BFloat16Tensor(_Typed): ...

    class LongTensor(_Typed): ...

    class IntTensor(_Typed): ...

    class ShortTensor(_Typed): ...

    class CharTensor(_Typed): ...

    class ByteTensor(_Typed): ...

    class BoolTensor(_Typed): ...


_DTYPES: dict[str, _C.dtype] = {name: kind.dtype for name, kind in CLASSES.items()}
_DTYPES |= {"ComplexFloatTensor": _C.complex64, "ComplexDoubleTensor": _C.complex128}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def name_of(x: Tensor) -> str:
    """What x.type() gives: "torch.FloatTensor", as PyTorch's programs compare it.

    Tensors on other devices than the CPU have its name within: "torch.reference.FloatTensor".
    """
    place = "" if x.device.type == "cpu" else f"{x.device.type}."
    return f"torch.{place}{_NAMES.get(x.dtype, str(x.dtype).removeprefix('kiln.'))}"


def dtype_of(kind: Any, op: str = "type") -> dtype:
    """The dtype that a dtype, a class (kiln.FloatTensor) or a text names.

    Texts: "torch.FloatTensor", "kiln.FloatTensor", "torch.float32", "float32". Raises DeviceError
    for tensors of another device ("torch.cuda.FloatTensor") and DTypeError for an unknown name.
    """
    if isinstance(kind, _OfDtype):
        return kind.dtype  # type: ignore[attr-defined, no-any-return]
    if not isinstance(kind, str):
        _dtypes.refuse_among((kind,), op)
        if isinstance(kind, _C.dtype) or kind in (float, int, bool, complex):
            return _C.empty(0, dtype=kind).dtype
        raise errors.TypeError(f"{op}: expected a dtype or its name; got {kind!r}")
    package, _, name = kind.rpartition(".")
    package = package.removeprefix("torch").removeprefix("kiln").removeprefix(".")
    if package:
        _C._device(package)  # raises DeviceError where there is none
        raise errors.DeviceError(f"{op}: expected a type on the CPU; got {kind!r}; try to({package!r})")
    return _DTYPES[name] if name in _DTYPES else _C._dtype(name)
