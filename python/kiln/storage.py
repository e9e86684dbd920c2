"""The memory of tensors: what x.untyped_storage() and x.storage() give, and torch.storage's names.

It can be looked at, compared by its address, read and written. It neither grows nor is it exchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C, _tensor_types, errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from ._C import Tensor, device
    from ._typing import DeviceLike


def _whole(tensor: Tensor) -> Tensor:
    """All of a tensor's memory as a row, without a graph."""
    count = _C._storage_nbytes(tensor) // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0)


def _of(values: Any, dtype: Any) -> Tensor:
    """New memory: of so many elements, or of these."""
    if isinstance(values, int):
        return _C.empty(values, dtype=dtype)
    return _C.tensor(list(values), dtype=dtype)


class UntypedStorage:
    """The memory of a tensor, as its bytes.

    of: a tensor, whose memory it is; or a number of bytes or their values, for memory of its own.

    >>> x = kiln.zeros(4)
    >>> storage = x.untyped_storage()
    >>> storage.nbytes(), isinstance(storage, kiln.UntypedStorage)
    (16, True)
    """

    def __init__(self, of: Any = 0) -> None:
        if not isinstance(of, _C.Tensor):
            of = _of(of, _C.uint8)
        tensor = self._tensor = of
        step = tensor.element_size()
        self._start = tensor.data_ptr() - tensor.storage_offset() * step if tensor.numel() else 0

    def _values(self) -> Tensor:
        return _whole(self._tensor).view(_C.uint8)

    def data_ptr(self) -> int:
        """Where it begins: the same for all views of one memory."""
        return self._start

    @property
    def _cdata(self) -> int:
        return self._start

    def nbytes(self) -> int:
        """How many bytes it has: those of all tensors that share it."""
        return _C._storage_nbytes(self._tensor)

    def size(self) -> int:
        """nbytes()."""
        return self.nbytes()

    def element_size(self) -> int:
        """1: it is made of bytes."""
        return 1

    def __len__(self) -> int:
        return self.size()

    @property
    def device(self) -> device:
        """Where it lies."""
        return self._tensor.device

    @property
    def is_cuda(self) -> bool:
        """Whether it lies on a CUDA device."""
        return self.device.type == "cuda"

    def tolist(self) -> list[Any]:
        """Its values."""
        return self._values().tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        values = self._values()[index]
        return values.item() if values.dim() == 0 else type(self)(values.clone())

    def __setitem__(self, index: Any, value: Any) -> None:
        self._values()[index] = value  # which is detached

    def fill_(self, value: Any) -> Self:
        """Writes one value everywhere."""
        self[:] = value
        return self

    def clone(self) -> Self:
        """A copy."""
        return type(self)(self._values().clone())

    def copy_(self, source: Any, non_blocking: bool = False) -> Self:
        """Writes another storage's values, which are as many. non_blocking: without effect."""
        self[:] = source._values()
        return self

    def to(self, *, device: DeviceLike, non_blocking: bool = False) -> Self:
        """Itself where it lies there, else a copy. non_blocking: without effect."""
        values = self._values()
        return self if values.device == _C._device(device) else type(self)(values.to(device))

    def cpu(self) -> Self:
        """to(device="cpu")."""
        return self.to(device="cpu")

    def cuda(self, device: DeviceLike | None = None, non_blocking: bool = False) -> Self:
        """to(device="cuda")."""
        return self.to(device="cuda" if device is None else device)

    def resizable(self) -> bool:
        """False."""
        return False

    def resize_(self, size: int) -> None:
        """RuntimeError, unless it has that size."""
        if size != self.size():
            raise errors.RuntimeError(
                f"resize_: a storage keeps its size; got {size}; expected {self.size()}"
            )

    def __repr__(self) -> str:
        values = "".join(f" {value}\n" for value in self.tolist())
        return f"{values}[{type(self).__name__}(device={self.device}) of size {self.size()}]"


class TypedStorage(UntypedStorage):
    """The memory of a tensor, as elements of its dtype. Its subclasses have one dtype: FloatStorage.

    of: a tensor, whose memory it is; or a number of elements or their values.

    >>> storage = kiln.arange(3.).storage()
    >>> storage.tolist(), storage.dtype, isinstance(storage, kiln.FloatStorage)
    ([0.0, 1.0, 2.0], kiln.float32, True)
    """

    def __init__(self, of: Any = 0) -> None:
        if not isinstance(of, _C.Tensor):
            of = _of(of, _C.get_default_dtype())
        super().__init__(of)
        self.dtype = of.dtype

    def _values(self) -> Tensor:
        return _whole(self._tensor)

    def size(self) -> int:
        """How many elements it has."""
        return self.nbytes() // self.element_size()

    def element_size(self) -> int:
        """The bytes of one element."""
        return self._tensor.element_size()

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._tensor)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    def type(self) -> str:
        """PyTorch's name for storages of this dtype: "torch.FloatStorage"."""
        return _tensor_types.name_of(self._tensor).removesuffix("Tensor") + "Storage"


class _OfDtype(type):
    """Storages of one dtype: isinstance() looks at the dtype."""

    def __instancecheck__(cls, x):
        return type(x) is TypedStorage and x.dtype == cls.dtype

    def __call__(cls, *values):
        return TypedStorage(_of(*(values or (0,)), cls.dtype))


def _class_of(name, dtype):
    doc = f"""Storages of {dtype}: isinstance() knows them; called with a size or with values.

>>> kiln.{name}([1, 0]).dtype
{dtype}"""
    return _OfDtype(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "kiln.storage"})


CLASSES: dict[str, Any] = {
    f"{name.removesuffix('Tensor')}Storage": _class_of(f"{name.removesuffix('Tensor')}Storage", dtype)
    for name, dtype in _tensor_types._DTYPES.items()
}
globals().update(CLASSES)
if TYPE_CHECKING:
    FloatStorage: Any
    DoubleStorage: Any
    HalfStorage: Any
    BFloat16Storage: Any
    LongStorage: Any
    IntStorage: Any
    ShortStorage: Any
    CharStorage: Any
    ByteStorage: Any
    BoolStorage: Any
    ComplexFloatStorage: Any
    ComplexDoubleStorage: Any


def is_storage(obj: object) -> bool:
    """Whether an object is the memory of a tensor.

    >>> kiln.is_storage(kiln.zeros(1).untyped_storage())
    True
    """
    return isinstance(obj, UntypedStorage)


__all__ = ["TypedStorage", "UntypedStorage", "is_storage", *CLASSES]
