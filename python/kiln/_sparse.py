"""SparseTensor: the class of sparse tensors, over the functions of kiln._C._sparse.

A sparse tensor is a tensor of its values with an attribute that says where they stand. So dtypes,
devices and gradients are those of any tensor. Functions that know sparse tensors are methods here.
The others refuse them: a function that saw the values alone would give wrong results.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from . import _C, _overrides, errors
from ._C import _sparse as _S

if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor

LAYOUTS = ("sparse_coo", "sparse_csr")


def layout_of(op: str, layout: Any, blocksize: Any = None) -> str:
    """The layout that an argument names."""
    if layout is None:
        layout = "sparse_coo"
    if layout not in LAYOUTS or blocksize is not None:
        raise errors.NotImplementedError(
            f"{op}: got layout {layout!r} and blocksize {blocksize!r}; expected"
            " kiln.sparse_coo or kiln.sparse_csr"
        )
    return layout


def _plain(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The function's own call, which sees the tensor of values."""
    return _C._call_itself(function, args, kwargs or None)


# What concerns the values alone.
_OF_VALUES = frozenset(
    """dtype device requires_grad requires_grad_ is_leaf grad_fn is_floating_point is_complex is_signed
    element_size itemsize get_device is_cuda is_cpu is_quantized retain_grad retains_grad register_hook
    register_post_accumulate_grad_hook is_inference is_conj is_neg is_shared is_pinned""".split()
)


_PROPERTIES = {value: name for name, value in vars(_C.Tensor).items() if isinstance(value, property)}


def _name_of(func: Any) -> str:
    name = getattr(func, "__name__", "a function")
    return _PROPERTIES.get(func.__self__, name) if name == "__get__" else name


def unsupported(name: str) -> Exception:
    return errors.NotImplementedError(
        f"{name}: is not defined for sparse tensors; try to_dense()"
    )


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex))


def _is_sparse(x: Any) -> bool:
    return isinstance(x, SparseTensor)


def _tensor(op: str, x: Any) -> Tensor:
    if not isinstance(x, _C.Tensor):
        raise errors.TypeError(f"{op}: expected a tensor; got {type(x).__name__}")
    return x


def _on_values(name: str) -> Any:
    """A method that computes each value by itself and keeps 0."""

    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        whole = self.coalesce()
        return _S.with_values(whole, getattr(_S.raw_values(whole), name)(*args, **kwargs))

    method.__name__ = method.__qualname__ = name
    return method


def _cast(name: str) -> Any:
    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        target = getattr(_C.empty(0, dtype=self.dtype), name)().dtype
        return self if target == self.dtype else _S.to_dtype(self, target)

    method.__name__ = method.__qualname__ = name
    return method


# Any, for methods here take other arguments than those of the class that they replace.
_Base: Any = _C.Tensor


class SparseTensor(_Base):
    """A sparse tensor. kiln.sparse_coo_tensor, kiln.sparse_csr_tensor and to_sparse() make them."""

    _pattern: Any

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = _name_of(func)
        if name == "grad" and len(args) + len(kwargs) > 1:
            return _gradients(func, *args, **kwargs)
        if name in _OF_VALUES:
            return _plain(func, *args, **kwargs)
        method = vars(SparseTensor).get(name)
        if method is None or isinstance(method, property):
            raise unsupported(name)
        if not args and "input" in kwargs:
            args = (kwargs.pop("input"),)
        return method(*args, **kwargs)

    # ---- Description

    @property
    def shape(self) -> Any:
        return _S.shape(self)

    @property
    def layout(self) -> str:
        return self._pattern.layout

    @property
    def is_sparse(self) -> bool:
        return self._pattern.layout == "sparse_coo"

    @property
    def is_sparse_csr(self) -> bool:
        return self._pattern.layout == "sparse_csr"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self.shape.numel()

    nelement = numel

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return _S.text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(_S.text(self), spec)

    def sparse_dim(self) -> int:
        return _S.sparse_dim(self)

    def dense_dim(self) -> int:
        return _S.dense_dim(self)

    _dimI = sparse_dim
    _dimV = dense_dim

    def _nnz(self) -> int:
        return _S.nnz(self)

    def is_coalesced(self) -> bool:
        return self._pattern.coalesced

    def is_same_size(self, other: Tensor) -> bool:
        _tensor("is_same_size", other)
        return self.shape == other.shape

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return True

    def contiguous(self, memory_format: Any = None) -> SparseTensor:
        return self

    # ---- Parts

    def indices(self) -> Tensor:
        return _S.indices(self)

    def _indices(self) -> Tensor:
        return _S.raw_indices(self)

    def values(self) -> Tensor:
        return _S.values(self)

    def _values(self) -> Tensor:
        return _S.raw_values(self).detach()

    def crow_indices(self) -> Tensor:
        return _S.crow_indices(self)

    def col_indices(self) -> Tensor:
        return _S.col_indices(self)

    def coalesce(self) -> SparseTensor:
        return self if self.is_coalesced() else _S.coalesce(self)

    # ---- Other forms

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        out = _S.to_dense(self)
        return out if dtype is None else out.to(dtype)

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
        dense_dim: int | None = None,
    ) -> SparseTensor:  # fmt: skip
        layout = layout_of("to_sparse", layout, blocksize)
        wanted = self.dim() - dense_dim if dense_dim is not None else sparse_dim
        if wanted is not None and wanted != self.sparse_dim():
            raise errors.ValueError(
                f"to_sparse: the tensor has {self.sparse_dim()} sparse dims; expected {wanted},"
                " try to_dense().to_sparse()"
            )
        if layout == self.layout:
            return self
        return _S.to_csr(self) if layout == "sparse_csr" else _S.to_coo(self)

    def to_sparse_coo(self) -> SparseTensor:
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseTensor:
        return self.to_sparse(layout="sparse_csr", dense_dim=dense_dim)

    def sparse_mask(self, mask: SparseTensor) -> SparseTensor:
        return _S.mask(self.to_dense() if _is_sparse(self) else self, mask)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        if not _is_sparse(self) or any(map(_is_sparse, (*args[1:], *kwargs.values()))):
            raise errors.TypeError("to: expected a dtype, a device or a tensor; got a sparse tensor beside it")
        copy = kwargs.get("copy", False)
        if args and isinstance(args[0], _C.Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        like = _C.empty(0, dtype=self.dtype, device=self.device).to(*args, **kwargs)
        out = self
        if like.dtype != out.dtype:
            out = _S.to_dtype(out, like.dtype)
        if like.device != out.device:
            out = _S.to_device(out, like.device)
        return _S.clone(out) if copy and out is self else out

    def cpu(self, memory_format: Any = None) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        return self.to("cuda" if device is None else device)

    def type_as(self, tensor: Tensor) -> SparseTensor:
        return self.to(_tensor("type_as", tensor).dtype)

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        return _S.clone(self)

    def detach(self) -> SparseTensor:
        return _S.detach(self)

    @property
    def data(self) -> SparseTensor:
        return _S.detach(self)

    def copy_(self, src: Any, non_blocking: bool = False) -> SparseTensor:
        alike = _is_sparse(src) and (src.layout, src.shape, src._nnz()) == (self.layout, self.shape, self._nnz())
        if not alike:
            raise errors.ValueError(
                "copy_: expected a sparse tensor of the same layout, shape and number of entries"
            )
        _plain(_C.Tensor.copy_, self, _S.raw_values(src))
        self._pattern = src._pattern
        return self

    def zeros_like(self, **kwargs: Any) -> Tensor:
        from ._sparse_creation import sparse_coo_tensor

        kwargs.setdefault("dtype", self.dtype)
        kwargs.setdefault("device", self.device)
        out = sparse_coo_tensor(self.shape, **kwargs)
        return out if self.is_sparse else out.to_sparse_csr()

    empty_like = zeros_like

    # ---- Gradients

    @property
    def grad(self) -> Any:
        found = _plain(_C.Tensor.grad.__get__, self)
        if found is None or _is_sparse(found):
            return found
        return _S.with_values(self, found)

    @grad.setter
    def grad(self, value: Any) -> None:
        if _is_sparse(value):
            value = _S.raw_values(value)
        _Base.grad.fset(self, value)

    @grad.deleter
    def grad(self) -> None:
        _Base.grad.fset(self, None)

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        if gradient is not None:
            gradient = _gradient_of(self, gradient)
        _plain(_C.Tensor.backward, self, gradient, *args, **kwargs)

    # ---- Arithmetic

    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        if _is_number(self) or _is_number(other):
            raise unsupported("add of a number")
        if not _is_sparse(other):  # the dense one first
            return _S.add(_times(other, alpha), self, 1)
        return _S.add(*_one_dtype(self, other), alpha)

    def sub(self, other: Any, *, alpha: Any = 1) -> Any:
        if _is_number(self) or _is_number(other):
            raise unsupported("sub of a number")
        if not _is_sparse(other):
            return _S.add(_times(other, -alpha), self, 1)
        return _S.add(*_one_dtype(self, other), -alpha)

    def mul(self, other: Any) -> Any:
        if _is_number(self):
            self, other = other, self
        if _is_number(other):
            return _S.mul_number(self, other)
        return _S.mul(*(_one_dtype(self, other) if _is_sparse(self) and _is_sparse(other) else (self, other)))

    def div(self, other: Any, *, rounding_mode: Any = None) -> Any:
        if rounding_mode is not None or _is_number(self) or _is_sparse(other):
            raise unsupported("div with a rounding mode or by a sparse tensor")
        return _S.div_number(self, other) if _is_number(other) else _S.div(self, other)

    def mul_(self, other: Any) -> SparseTensor:
        return _in_place("mul_", self, other)

    def div_(self, other: Any) -> SparseTensor:
        return _in_place("div_", self, other)

    def neg_(self) -> SparseTensor:
        return _in_place("neg_", self)

    def zero_(self) -> SparseTensor:
        return _in_place("zero_", self)

    multiply, divide, true_divide, subtract = mul, div, div, sub
    __add__, __sub__, __mul__, __truediv__ = add, sub, mul, div
    __rmul__ = mul
    __iadd__, __isub__, __imul__, __itruediv__ = add, sub, mul, div

    def __radd__(self, other: Any) -> Any:
        return SparseTensor.add(other, self)

    def __rsub__(self, other: Any) -> Any:
        return SparseTensor.sub(other, self)

    def pow(self, exponent: Any) -> Any:
        if not _is_sparse(self) or not isinstance(exponent, (int, float)) or exponent <= 0:
            raise unsupported("pow with an exponent that is no positive number")
        whole = self.coalesce()
        return _S.with_values(whole, _S.raw_values(whole).pow(exponent))

    __pow__ = pow

    def __neg__(self) -> Any:
        return self.neg()

    def __abs__(self) -> Any:
        return self.abs()

    # ---- Products

    def mm(self, mat2: Any) -> Any:
        return _S.mm(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        return _S.mv(self, vec)

    def matmul(self, other: Any) -> Any:
        if not isinstance(self, _C.Tensor) or not isinstance(other, _C.Tensor):
            return NotImplemented
        if other.dim() == 1 and _is_sparse(self) and not _is_sparse(other):
            return _S.mv(self, other)
        if self.dim() == 1 and not _is_sparse(self):
            return _S.mm(self.unsqueeze(0), other).squeeze(0)
        return _S.mm(self, other)

    __matmul__ = matmul

    def __rmatmul__(self, other: Any) -> Any:
        return SparseTensor.matmul(other, self)

    def addmm(self, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        if _is_sparse(self) or _is_sparse(mat2):
            raise unsupported("addmm of a sparse input or second factor")
        return _S.addmm(self, mat1, mat2, beta, alpha)

    # ---- Dims

    def t(self) -> SparseTensor:
        return _S.t(self)

    T = property(t)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        return _S.transpose(self, dim0, dim1)

    swapaxes = swapdims = transpose

    def permute(self, *dims: Any) -> SparseTensor:
        return _S.permute(self, list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims))

    def unsqueeze(self, dim: int) -> SparseTensor:
        return _S.unsqueeze(self, dim)

    def sum(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        if keepdim:
            raise unsupported("sum with keepdim")
        x = self if dtype is None else self.to(dtype)
        return _S.sum(x) if dim is None else _S.sum_over(x, dim)

    def norm(self, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
        if dim is not None or keepdim or dtype is not None:
            raise unsupported("norm over dims")
        return _S.raw_values(self.coalesce()).norm(p)

    def softmax(self, dim: int, dtype: Any = None) -> SparseTensor:
        return _S.softmax(self if dtype is None else self.to(dtype), dim)

    def log_softmax(self, dim: int, dtype: Any = None) -> SparseTensor:
        return _S.log_softmax(self if dtype is None else self.to(dtype), dim)

    def index_select(self, dim: int, index: Tensor) -> SparseTensor:
        return _S.index_select(self, dim, index)

    def select(self, dim: int, index: int) -> Any:
        return _S.select(self, dim, index)

    def narrow(self, dim: int, start: int, length: int) -> SparseTensor:
        first = operator.index(start)
        at = _C.arange(first, first + operator.index(length), device=self.device)
        return _S.index_select(self, dim, at)

    narrow_copy = narrow

    def cat(self: Any, dim: int = 0, *, axis: int | None = None) -> SparseTensor:
        """kiln.cat, whose first argument is a list."""
        if not all(map(_is_sparse, self)):
            raise unsupported("cat of sparse and dense tensors")
        return _S.cat(list(self), dim if axis is None else axis)

    concat = concatenate = cat

    def stack(self: Any, dim: int = 0) -> SparseTensor:
        """kiln.stack, whose first argument is a list."""
        if not all(map(_is_sparse, self)):
            raise unsupported("stack of sparse and dense tensors")
        return _S.cat([_S.unsqueeze(x, dim) for x in self], dim)

    def __getitem__(self, index: Any) -> Any:
        entries = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in [e for e in entries if not isinstance(e, _C.Tensor)]:
            at = next(i for i, e in enumerate(entries) if e is Ellipsis)
            full = [slice(None)] * (self.dim() - len(entries) + 1)
            entries[at : at + 1] = full
        if len(entries) > self.dim():
            raise errors.IndexError(f"index: got {len(entries)} indices for {self.dim()} dims")
        out: Any = self
        dim = 0
        for entry in entries:
            if isinstance(entry, int) and not isinstance(entry, bool):
                out = out.select(dim, entry)
                continue
            if isinstance(entry, slice):
                if entry != slice(None):
                    places = list(range(*entry.indices(out.size(dim))))
                    out = out.index_select(dim, _C.tensor(places, dtype=_C.int64, device=out.device))
            elif isinstance(entry, _C.Tensor) and entry.dim() == 1 and not entry.is_floating_point():
                out = out.index_select(dim, entry)
            else:
                raise unsupported("an index of this kind")
            dim += 1
        return out

    def __setitem__(self, index: Any, value: Any) -> None:
        raise unsupported("setitem")

    # ---- Python

    def __bool__(self) -> bool:
        raise unsupported("bool")

    def item(self) -> Any:
        return self.to_dense().item()

    def __deepcopy__(self, memo: Any) -> SparseTensor:
        if id(self) not in memo:
            out = _S.clone(_S.detach(self))
            memo[id(self)] = out.requires_grad_() if self.requires_grad else out
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        from . import _pickle

        if not self.is_leaf:
            raise RuntimeError("pickle: only leaves can be pickled; try detach()")
        parts: tuple[Tensor, ...]
        if self.is_sparse:
            parts = (self._indices(), self._values())
        else:
            parts = (self.crow_indices(), self.col_indices(), self._values())
        state = (self.layout, parts, tuple(self.shape), self.is_coalesced(), self.requires_grad)
        return _pickle.rebuild_sparse, state


_KEEP_ZERO = """
abs absolute neg negative positive sqrt square sin sinh tan tanh asin arcsin asinh arcsinh atan arctan atanh
arctanh ceil floor round trunc fix frac sgn sign expm1 log1p deg2rad rad2deg erf erfinv relu conj isnan isinf
isneginf isposinf signbit nan_to_num
""".split()
for _name in _KEEP_ZERO:
    setattr(SparseTensor, _name, _on_values(_name))
for _name in "float double half bfloat16 long int short char byte bool cfloat cdouble".split():
    if hasattr(_C.Tensor, _name):
        setattr(SparseTensor, _name, _cast(_name))
del _name


def _in_place(name: str, x: SparseTensor, *numbers: Any) -> SparseTensor:
    """Writes into the values."""
    if not all(map(_is_number, numbers)):
        raise unsupported(f"{name} with a tensor")
    _plain(getattr(_C.Tensor, name), x, *numbers)
    return x


def _times(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


def _one_dtype(x: SparseTensor, y: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    kind = _C.promote_types(x.dtype, y.dtype)
    return x.to(kind), y.to(kind)


def _gradient_of(x: SparseTensor, gradient: Any) -> Tensor:
    """A gradient of x as one of its values."""
    if _is_sparse(gradient):
        gradient = gradient.to_dense()
    return _S.raw_values(_S.mask(gradient, x)).detach()


def _gradients(func: Any, outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """autograd.grad, where inputs or outputs are sparse: gradients of sparse inputs are sparse."""
    outs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    ins = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    if grad_outputs is not None:
        given = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
        grad_outputs = [
            _gradient_of(out, g) if _is_sparse(out) and g is not None else g for out, g in zip(outs, given)
        ]
    found = _plain(func, outs, ins, grad_outputs, *args, **kwargs)
    return tuple(
        _S.with_values(x, g) if _is_sparse(x) and g is not None and not _is_sparse(g) else g
        for x, g in zip(ins, found)
    )


_S.set_class(SparseTensor)
_overrides.override_from_now()
