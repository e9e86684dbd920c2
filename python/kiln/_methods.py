"""Methods of tensors that are short in Python."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from . import _C, _parameter, _sparse_methods, _tensor_types  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ._C import Tensor, device, dtype
    from ._typing import DeviceLike
    from .storage import TypedStorage, UntypedStorage


def is_inference(self: Tensor) -> bool:
    """False: what was made in inference mode may be used in graphs like any other tensor.

    >>> kiln.zeros(1).is_inference()
    False
    """
    return False


def new(self: Tensor, *values: Any) -> Tensor:
    """kiln.Tensor(*values) with this tensor's dtype and device: sizes, or a sequence of values.

    >>> kiln.zeros(1, dtype=kiln.int64).new([1, 2])
    tensor([1, 2])
    >>> kiln.zeros(1).new(2, 3).shape
    kiln.Size([2, 3])
    """
    return _C.Tensor(*values).to(self)


def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """What NumPy's functions make of this tensor is a tensor: numpy.sin(x)."""
    return _C.from_numpy(array) if array.ndim else _C.tensor(array)


def to_dense(
    self: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """The tensor itself, for none is sparse, in `dtype`.

    >>> kiln.zeros(1).to_dense()
    tensor([0.])
    """
    return self if dtype is None else self.to(dtype)


_contains = _C.Tensor.__contains__


def __contains__(self: Tensor, element: Any) -> bool:
    """Whether any element equals a number, or one of a tensor's."""
    if isinstance(element, (_C.Tensor, int, float)):
        return _contains(self, element)
    if isinstance(element, complex) or getattr(element, "shape", None) == ():
        return bool((self == element).any())
    raise RuntimeError(
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
        f"{element.__class__}."
    )


_C.Tensor.__contains__ = __contains__  # type: ignore[method-assign, assignment]


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dims from the outermost in memory to the innermost, as a tuple.

    >>> kiln.zeros(2, 3).T.dim_order()
    (1, 0)
    """
    return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride()[d], d)))


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same view of the same memory.

    >>> x = kiln.zeros(2)
    >>> x.is_set_to(x.view(2)), x.is_set_to(x.clone())
    (True, False)
    """
    same = self.data_ptr() == tensor.data_ptr() and self.shape == tensor.shape
    return same and self.dtype == tensor.dtype and self.stride() == tensor.stride()


def sgn_(self: Tensor) -> Tensor:
    """sgn() in place.

    >>> kiln.tensor([-7., 3.]).sgn_()
    tensor([-1.,  1.])
    """
    return self.copy_(self.sgn())


def conj_physical_(self: Tensor) -> Tensor:
    """conj() in place.

    >>> kiln.tensor([1 + 2j]).conj_physical_()
    tensor([1.-2.j])
    """
    return self.copy_(self.conj().clone()) if self.is_complex() else self


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Each element replaced by callable(element): as slow as Python. Not recorded.

    >>> kiln.tensor([1., 2.]).apply_(lambda x: x * 10)
    tensor([10., 20.])
    """
    values = [callable(x) for x in self.flatten().tolist()]
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Each element replaced by callable(element, that of tensor), which broadcasts. Not recorded.

    >>> kiln.tensor([1., 2.]).map_(kiln.tensor(5.), lambda x, y: x + y)
    tensor([6., 7.])
    """
    others = tensor.expand(self.shape).flatten().tolist()
    values = [callable(x, y) for x, y in zip(self.flatten().tolist(), others)]
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """What kind of tensor it is, "torch.FloatTensor", or the same values as another dtype.

    dtype: a dtype, its name, a class such as kiln.FloatTensor or "torch.FloatTensor".

    >>> kiln.zeros(1).type(), kiln.zeros(1).type(kiln.int64)
    ('torch.FloatTensor', tensor([0]))
    """
    if dtype is None:
        return _tensor_types.name_of(self)
    return self.to(_tensor_types.dtype_of(dtype))


def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of narrow(dim, start, length).

    >>> kiln.tensor([1, 2, 3]).narrow_copy(0, 1, 2)
    tensor([2, 3])
    """
    return self.narrow(dim, start, length).clone()


def new_empty_strided(
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: dtype | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    layout: str | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Memory with these strides in elements, and this tensor's dtype and device.

    >>> kiln.zeros(1).new_empty_strided((2, 2), (1, 2)).stride()
    (1, 2)
    """
    return _C.empty_strided(
        size,
        stride,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )


def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """nn.functional.hardshrink.

    >>> kiln.tensor([-1., 0.25]).hardshrink()
    tensor([-1.,  0.])
    """
    return _C._functional.hardshrink(self, lambd)


def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """nn.functional.prelu.

    >>> kiln.tensor([-2., 3.]).prelu(kiln.tensor([0.5]))
    tensor([-1.,  3.])
    """
    return _C._functional.prelu(self, weight)


def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` rows of nonzero(), filled up with fill_value.

    >>> kiln.tensor([0, 7]).nonzero_static(size=1)
    tensor([[1]])
    """
    if size < 0:
        raise ValueError(f"nonzero_static: expected a size >= 0; got {size}")
    found = self.nonzero()[:size]
    missing = _C.full((size - len(found), found.shape[1]), fill_value, dtype=found.dtype)
    return _C.cat([found, missing])


def as_subclass(self: Tensor, cls: Callable[..., Any]) -> Any:
    """The tensor as one of that subclass of Tensor, whose __init__ does not run: the same memory, and
    the next step of its history where a gradient is recorded.

    >>> class Marked(kiln.Tensor):
    ...     pass
    >>> type(kiln.ones(2).as_subclass(Marked)).__name__
    'Marked'
    """
    if not (inspect.isclass(cls) and issubclass(cls, _C.Tensor)):
        raise TypeError(f"as_subclass: expected a subclass of Tensor; got {cls!r}")
    if issubclass(cls, _C.Parameter):
        return _parameter.make_subclass(cls, self, self.requires_grad)
    return _C._as_subclass(cls, self)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that the tensor shares with its views.

    >>> x = kiln.zeros(4)
    >>> x[1:].untyped_storage().data_ptr() == x.data_ptr()
    True
    """
    from .storage import UntypedStorage

    return UntypedStorage(self)


def storage(self: Tensor) -> TypedStorage:
    """The memory that the tensor shares with its views, as elements of its dtype.

    >>> kiln.arange(4.)[2:].storage().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    from .storage import TypedStorage

    return TypedStorage(self)


def as_strided_scatter(
    self: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """kiln.as_strided_scatter.

    >>> kiln.zeros(3).as_strided_scatter(kiln.tensor([5., 6.]), (2,), (2,))
    tensor([5., 0., 6.])
    """
    from . import _names

    return _names.as_strided_scatter(self, src, size, stride, storage_offset)


for _method in (
    new, __array_wrap__, as_subclass, untyped_storage, storage, as_strided_scatter, is_inference, to_dense, dim_order, is_set_to, sgn_, conj_physical_,
    apply_, map_, type, narrow_copy, new_empty_strided, hardshrink, prelu, nonzero_static,
):  # fmt: skip
    if not hasattr(_C.Tensor, _method.__name__):
        setattr(_C.Tensor, _method.__name__, _method)
_C.Tensor.is_meta = property(  # type: ignore[assignment]
    lambda self: self.device.type == "meta", doc="Whether it has a shape and a dtype, and no values."
)
_C.Tensor.layout = property(lambda self: "strided", doc="How elements lie in memory: strided.")  # type: ignore[assignment]
for _name in ("is_sparse", "is_sparse_csr", "is_nested", "is_mkldnn", "is_xla", "is_mps", "is_xpu",
              "is_vulkan", "is_ipu", "is_mtia", "is_maia"):
    if not hasattr(_C.Tensor, _name):
        setattr(_C.Tensor, _name, False)
