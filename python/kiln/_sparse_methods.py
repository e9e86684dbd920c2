"""Methods of tensors that concern sparse ones. Those that only sparse tensors have refuse others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C, errors

if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor


def _dense(name: str) -> Any:
    return errors.TypeError(f"{name}: expected a sparse tensor; got a dense one, try to_sparse()")


def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor of what is not zero. Gradients flow back.

    sparse_dim: how many of the first dims are sparse, all by default. layout: kiln.sparse_coo (the
    default) or kiln.sparse_csr. dense_dim: how many of the last dims are dense. blocksize: must be
    None, because there are no layouts of blocks.

    >>> kiln.tensor([[0., 2.], [0., 0.]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([2.]),
           size=(2, 2), nnz=1, layout=kiln.sparse_coo)
    """
    from ._sparse import _S, layout_of

    layout = layout_of("to_sparse", layout, blocksize)
    if dense_dim is not None:
        sparse_dim = self.dim() - dense_dim
    return _S.from_dense(self, sparse_dim, layout)


def to_sparse_coo(self: Tensor) -> Tensor:
    """to_sparse(layout=kiln.sparse_coo).

    >>> kiln.tensor([0., 2.]).to_sparse_coo().indices()
    tensor([[1]])
    """
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """A matrix in compressed rows. dense_dim: must be None or 0.

    >>> kiln.tensor([[0., 2.], [3., 4.]]).to_sparse_csr().crow_indices()
    tensor([0, 1, 3])
    """
    return to_sparse(self, layout="sparse_csr", dense_dim=dense_dim)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places of a sparse tensor `mask`, with its indices.

    >>> x = kiln.tensor([[1., 2.], [3., 4.]])
    >>> x.sparse_mask(kiln.eye(2).to_sparse()).values()
    tensor([1., 4.])
    """
    from ._sparse import _S

    return _S.mask(self, mask)


def coalesce(self: Tensor) -> Tensor:
    """A sparse tensor with distinct indices in row-major order. Values of one index are added up.

    >>> kiln.sparse_coo_tensor([[1, 1]], [2., 3.], (2,)).coalesce().values()
    tensor([5.])
    """
    raise _dense("coalesce")


def is_coalesced(self: Tensor) -> bool:
    """Whether a sparse tensor's indices are known to be distinct and in row-major order.

    >>> kiln.sparse_coo_tensor([[1, 1]], [2., 3.], (2,)).is_coalesced()
    False
    """
    raise _dense("is_coalesced")


def indices(self: Tensor) -> Tensor:
    """The indices of a coalesced sparse tensor: [sparse dims, entries].

    >>> kiln.tensor([[0., 2.], [0., 0.]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    raise _dense("indices")


def values(self: Tensor) -> Tensor:
    """The values of a coalesced sparse tensor, or of one in compressed rows: [entries, ...].

    >>> kiln.tensor([[0., 2.], [0., 0.]]).to_sparse().values()
    tensor([2.])
    """
    raise _dense("values")


def crow_indices(self: Tensor) -> Tensor:
    """Where each row of a matrix in compressed rows begins: [rows + 1].

    >>> kiln.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    raise _dense("crow_indices")


def col_indices(self: Tensor) -> Tensor:
    """The columns of the values of a matrix in compressed rows: [entries].

    >>> kiln.eye(2).to_sparse_csr().col_indices()
    tensor([0, 1])
    """
    raise _dense("col_indices")


def sparse_dim(self: Tensor) -> int:
    """How many dims the indices of a sparse tensor name. 0 for a dense one.

    >>> kiln.eye(2).to_sparse().sparse_dim()
    2
    """
    return 0


def dense_dim(self: Tensor) -> int:
    """How many dims each value of a sparse tensor has. All dims of a dense one.

    >>> kiln.eye(2).to_sparse(1).dense_dim()
    1
    """
    return self.dim()


def _indices(self: Tensor) -> Tensor:
    raise _dense("_indices")


def _values(self: Tensor) -> Tensor:
    raise _dense("_values")


def _nnz(self: Tensor) -> int:
    raise _dense("_nnz")


METHODS = (
    to_sparse, to_sparse_coo, to_sparse_csr, sparse_mask, coalesce, is_coalesced, indices, values,
    crow_indices, col_indices, sparse_dim, dense_dim, _indices, _values, _nnz,
)  # fmt: skip
for _method in METHODS:
    setattr(_C.Tensor, _method.__name__, _method)
del _method
