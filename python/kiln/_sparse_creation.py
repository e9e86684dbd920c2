"""Functions that make sparse tensors. Their class is in _sparse.py, which the first of them loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._C import Tensor, dtype
    from ._typing import DeviceLike


def _index(values: Any, device: Any) -> Tensor:
    if isinstance(values, _C.Tensor):
        return values if device is None else values.to(device)
    return _C.tensor(values, dtype=_C.int64, device=device)


def _values(values: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(values, _C.Tensor):
        return values.to(device, dtype) if device is not None and dtype is not None else (
            values.to(device) if device is not None else values if dtype is None else values.to(dtype)
        )  # fmt: skip
    return _C.tensor(values, dtype=dtype, device=device)


def _finished(out: Any, requires_grad: bool) -> Any:
    return out.detach().requires_grad_() if requires_grad and not out.requires_grad else out


def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor of values at indices. Values of one index add up.

    indices: [sparse dims, entries] of integers, a tensor or nested lists. values: [entries, ...].
    The dims behind the first are dense. size: the sizes of all dims, by default the smallest that
    fit. dtype, device: of the result. Gradients flow to the values. requires_grad: makes it a leaf.
    check_invariants: has no effect, because indices are always checked. is_coalesced: says that
    indices are distinct and in row-major order. With sizes alone, sparse_coo_tensor((2, 3)), it has
    no entries. Raises IndexError, ShapeError and DTypeError.

    >>> kiln.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    from ._sparse import _S

    if values is None:
        sizes = indices if size is None else size
        if not isinstance(sizes, (tuple, list)):
            raise TypeError(
                "sparse_coo_tensor: expected indices and values, or sizes; got one argument of type "
                f"{type(sizes).__name__}"
            )
        whole = list(sizes)
        kind = dtype or _C.get_default_dtype()
        place = _C.empty(0, device=device).device
        return _finished(_S.empty_coo_tensor(whole, kind, place), requires_grad)
    stored = _values(values, dtype, device)
    at = _index(indices, stored.device)
    sizes = None if size is None else list(size)
    out = _S.coo_tensor(at, stored, sizes, bool(is_coalesced))
    return _finished(out, requires_grad)


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse matrix in compressed rows. Row i has the values from crow_indices[i] to crow_indices[i + 1].

    crow_indices: [rows + 1], rises from 0 to the number of values. col_indices: their columns.
    values: one number for each. size: (rows, columns). dtype, device: of the result. Gradients flow
    to the values. requires_grad: makes it a leaf. check_invariants: has no effect, because indices
    are always checked. Raises IndexError, ShapeError and DTypeError.

    >>> kiln.sparse_csr_tensor([0, 1, 2], [2, 0], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    from ._sparse import _S

    stored = _values(values, dtype, device)
    crow, col = _index(crow_indices, stored.device), _index(col_indices, stored.device)
    sizes = None if size is None else list(size)
    out = _S.csr_tensor(crow, col, stored, sizes)
    return _finished(out, requires_grad)
