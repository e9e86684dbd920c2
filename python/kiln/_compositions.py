"""Functions and methods that are made of others, in Python."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from . import _C, _dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._C import Generator, Tensor, dtype
    from ._typing import DeviceLike

_FLOATS = {  # bits, bits of the fraction, largest exponent
    _C.float16: (16, 10, 15),
    _C.bfloat16: (16, 7, 127),
    _C.float32: (32, 23, 127),
    _C.float64: (64, 52, 1023),
}
_INTS = {
    _C.uint8: (8, False),
    _C.int8: (8, True),
    _C.int16: (16, True),
    _C.int32: (32, True),
    _C.int64: (64, True),
    _dtypes.uint16: (16, False),
    _dtypes.uint32: (32, False),
    _dtypes.uint64: (64, False),
}
_SMALL_FLOATS = {  # bits, eps, the largest, the smallest normal number
    _dtypes.float8_e4m3fn: (8, 2.0**-3, 448.0, 2.0**-6),
    _dtypes.float8_e4m3fnuz: (8, 2.0**-3, 240.0, 2.0**-7),
    _dtypes.float8_e5m2: (8, 2.0**-2, 57344.0, 2.0**-14),
    _dtypes.float8_e5m2fnuz: (8, 2.0**-3, 57344.0, 2.0**-15),
    _dtypes.float8_e8m0fnu: (8, 1.0, 2.0**127, 2.0**-127),
}


class finfo:
    """The limits of a floating point dtype; of a complex one, those of its parts.

    >>> kiln.finfo(kiln.float32).eps == 2.0**-23
    True
    """

    def __init__(self, dtype: dtype | None = None) -> None:
        dtype = _C.get_default_dtype() if dtype is None else dtype
        part = dtype.to_real() if hasattr(dtype, "to_real") else dtype
        self.dtype = str(part).rpartition(".")[2]
        if part in _SMALL_FLOATS:
            self.bits, self.eps, self.max, self.tiny = _SMALL_FLOATS[part]
            self.min = self.tiny if part == _dtypes.float8_e8m0fnu else -self.max
            self.smallest_normal, self.resolution = self.tiny, 1.0
            return
        if part not in _FLOATS:
            raise TypeError(f"finfo: expected a floating point dtype; got {dtype}, try iinfo")
        self.bits, fraction, exponent = _FLOATS[part]
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = 10.0 ** -int(fraction * 0.30103)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype.

    >>> kiln.iinfo(kiln.int8).max
    127
    """

    def __init__(self, dtype: dtype) -> None:
        if dtype not in _INTS:
            raise TypeError(f"iinfo: expected an integer dtype; got {dtype}, try finfo")
        self.bits, signed = _INTS[dtype]
        self.dtype = str(dtype).rpartition(".")[2]
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def asarray(
    obj: Any,
    dtype: dtype | None = None,
    device: DeviceLike | None = None,
    *,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """obj as a tensor: itself if it is one, over the memory of an array or of a buffer, else a copy.

    obj: a tensor, an array, a buffer (bytes, bytearray, memoryview), a number or nested lists of them.
    dtype: None takes it from obj; for a buffer it is the default dtype. device: "cpu" by default.
    copy: True always copies; False raises ValueError where the memory cannot be shared.
    requires_grad: whether the result does; None takes it from obj.

    >>> x = kiln.ones(2)
    >>> kiln.asarray(x) is x, kiln.asarray(x, copy=True) is x
    (True, False)
    >>> kiln.asarray([1., 2.], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    numpy: Any = sys.modules.get("numpy")  # without it nothing is an array of it
    whole: Any = None  # what shares its memory with obj
    if isinstance(obj, _C.Tensor):
        whole = obj
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        whole = _C.frombuffer(obj, dtype=_C.get_default_dtype() if dtype is None else dtype)
    elif numpy is not None and isinstance(obj, numpy.ndarray):
        whole = _C.as_tensor(obj)
        if copy is False and not obj.flags.writeable:
            raise errors.ValueError("can't alias a read-only array into a tensor.")
    elif copy is False:
        if numpy is not None and isinstance(obj, numpy.generic):
            raise errors.RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray."
            )
        raise errors.ValueError("can't alias arbitrary sequence into a tensor.")
    if whole is None:
        out = _C.as_tensor(obj, dtype, device)
    else:
        out = _C.as_tensor(whole, dtype, device)
        same = out.dtype == whole.dtype and out.device == whole.device
        if copy is False and not same:
            raise errors.ValueError(
                f"can't alias a tensor of {whole.dtype} on {whole.device} as one of {out.dtype} on "
                f"{out.device}."
            )
        if copy and same:
            out = out.clone()
    if requires_grad is None or out.requires_grad == requires_grad:
        return out
    return out.requires_grad_(requires_grad) if out.is_leaf else out.detach()


#: How each thread draws, where that is not C++'s way: kiln.func.vmap says so.
drawing = threading.local()


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn with the given weights, row by row.

    input: weights [k] or [rows, k], not negative. num_samples: how many from each row. replacement:
    whether one may come again. The result is int64; out: where it is written to.

    generator: a kiln.Generator; None is the default one, which kiln.manual_seed() seeds. The same seed
    gives the same numbers, on every machine and with any number of threads.

    >>> kiln.multinomial(kiln.tensor([0., 1., 0.]), 1)
    tensor([1])
    """
    draw = getattr(drawing, "multinomial", None)
    if draw is not None:
        found = draw(input, num_samples, replacement, generator)
        return found if out is None else out.copy_(found)
    if out is None:
        return _multinomial(input, num_samples, replacement, generator=generator)
    return _multinomial(input, num_samples, replacement, generator=generator, out=out)


_multinomial: Any = _C.multinomial
setattr(_C.Tensor, "multinomial", multinomial)


def clone(input: Tensor, *, memory_format: str | None = None) -> Tensor:
    """A copy, through which gradients flow.

    >>> x = kiln.zeros(1)
    >>> y = kiln.clone(x).add_(1)
    >>> x, y
    (tensor([0.]), tensor([1.]))
    """
    return input.clone(memory_format=memory_format) if memory_format else input.clone()


def detach(input: Tensor) -> Tensor:
    """The same memory without history.

    >>> kiln.detach(kiln.zeros(1, requires_grad=True)).requires_grad
    False
    """
    return input.detach()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape.

    >>> kiln.is_same_size(kiln.zeros(2), kiln.ones(2))
    True
    """
    return input.shape == other.shape


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of these sizes along dim: views.

    >>> kiln.split_with_sizes(kiln.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    return input.split(list(split_sizes), dim)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The index along each dim of row-major positions in a tensor of this shape, as a tuple.

    >>> kiln.unravel_index(kiln.tensor([5]), (2, 3))
    (tensor([1]), tensor([2]))
    """
    sizes = [shape] if isinstance(shape, int) else list(shape)
    total = 1
    for n in sizes:
        total *= n
    if indices.dtype not in _INTS:
        raise TypeError(f"unravel_index: expected integers; got {indices.dtype}")
    if indices.numel() > 0 and (indices.max().item() >= total or indices.min().item() < 0):
        raise ValueError(f"unravel_index: a position is outside of a tensor of shape {sizes}")
    indices = indices.to(_C.int64)
    out = []
    for n in reversed(sizes):
        out.append(indices % max(n, 1))
        indices = _C.div(indices, max(n, 1), rounding_mode="floor")
    return tuple(reversed(out))


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances between all pairs of rows of input [N, M], as one row of N (N - 1) / 2.

    >>> kiln.pdist(kiln.tensor([[0., 0.], [3., 4.]]))
    tensor([5.])
    """
    if input.dim() != 2:
        raise ValueError(f"pdist: expected an input [N, M]; got {list(input.shape)}")
    n = input.shape[0]
    row, column = _C.triu_indices(n, n, 1, device=input.device).unbind(0)
    every = _C.cdist(input, input, p, "donot_use_mm_for_euclid_dist")
    return every.flatten().index_select(0, row * n + column)


def sum_to_size(self: Tensor, *size: int | Sequence[int]) -> Tensor:
    """The sum over the dims along which a tensor of this size was broadcast.

    >>> kiln.ones(3, 2).sum_to_size(1, 2)
    tensor([[3., 3.]])
    """
    given: Any = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    sizes = list(given)
    lead = self.dim() - len(sizes)
    fits = lead >= 0 and all(n in (1, m) for n, m in zip(sizes, self.shape[lead:]))
    if not fits:
        raise RuntimeError(f"sum_to_size: {sizes} does not broadcast to {list(self.shape)}")
    dims = [d for d, m in enumerate(self.shape) if d < lead or (sizes[d - lead] == 1 and m != 1)]
    return (self.sum(dims, keepdim=True) if dims else self).reshape(sizes)


def _like(self, dtype, device, requires_grad):
    return {
        "dtype": self.dtype if dtype is None else dtype,
        "device": self.device if device is None else device,
        "requires_grad": requires_grad,
    }


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: dtype | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    layout: str | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of `data` with this one's dtype and device.

    >>> kiln.zeros(1, dtype=kiln.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=kiln.float64)
    """
    return _C.tensor(data, layout=layout, pin_memory=pin_memory, **_like(self, dtype, device, requires_grad))


def _assert(condition, message):
    """Raises AssertionError unless the condition holds: a bool, or a tensor of one."""
    assert bool(condition), message


def _assert_async(condition, message=""):
    """As _assert."""
    _assert(condition, message or "expected a tensor that is true")


for _method in (
    is_same_size, split_with_sizes, sum_to_size, new_tensor,
):  # fmt: skip
    if not hasattr(_C.Tensor, _method.__name__):
        setattr(_C.Tensor, _method.__name__, _method)
