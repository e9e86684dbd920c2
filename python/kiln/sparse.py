"""Functions of sparse tensors: kiln.sparse.mm, sum, softmax.

kiln.sparse_coo_tensor and kiln.sparse_csr_tensor make such tensors, and x.to_sparse() from a dense
one. They have many of the methods that tensors have. to_dense() gives a dense tensor for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import errors
from ._sparse import _S, SparseTensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._C import Tensor, dtype

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "sum"]


def _sparse_arg(op: str, x: Any) -> SparseTensor:
    if not isinstance(x, SparseTensor):
        raise errors.TypeError(f"sparse.{op}: expected a sparse tensor; got {type(x).__name__}")
    return x


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of two matrices, of which at least one is sparse. Of two sparse ones it is sparse.

    mat1: [m, k]. mat2: [k, n]. reduce: "sum". Gradients flow to the values of sparse matrices and to
    dense ones.

    >>> a = kiln.tensor([[0., 2.], [3., 0.]]).to_sparse()
    >>> kiln.sparse.mm(a, kiln.tensor([[1.], [10.]]))
    tensor([[20.],
            [ 3.]])
    """
    if reduce != "sum":
        raise errors.NotImplementedError(f"sparse.mm: got reduce={reduce!r}; expected 'sum'")
    return _S.mm(mat1, mat2)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha (mat1 @ mat2) of a sparse mat1 [m, k] and a dense mat2 [k, n].

    input: a dense tensor that broadcasts to [m, n].

    >>> a = kiln.tensor([[0., 2.], [3., 0.]]).to_sparse()
    >>> kiln.sparse.addmm(kiln.ones(2, 1), a, kiln.tensor([[1.], [10.]]), beta=5)
    tensor([[25.],
            [ 8.]])
    """
    return _S.addmm(input, _sparse_arg("addmm", mat1), mat2, beta, alpha)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta input + alpha (mat1 @ mat2) at the places of a sparse input alone.

    input: sparse [m, n]. mat1: dense [m, k]. mat2: dense [k, n].

    >>> a = kiln.tensor([[0., 2.], [3., 0.]]).to_sparse_csr()
    >>> kiln.sparse.sampled_addmm(a, kiln.ones(2, 3), kiln.ones(3, 2)).values()
    tensor([5., 6.])
    """
    return _S.sampled_addmm(_sparse_arg("sampled_addmm", input), mat1, mat2, beta, alpha)


def sum(
    input: Tensor, dim: int | Sequence[int] | None = None, dtype: dtype | None = None
) -> Tensor:
    """The sum of everything, or over dims. It is sparse where a sparse dim is left.

    dim: one or several. dtype: that of the sum.

    >>> kiln.sparse.sum(kiln.tensor([[0., 2.], [3., 4.]]).to_sparse(), 0).to_dense()
    tensor([3., 6.])
    """
    return _sparse_arg("sum", input).sum(dim, dtype=dtype)  # type: ignore[call-overload]


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Softmax over the stored elements along dim. The others count as -inf.

    dtype: that of the result.

    >>> kiln.sparse.softmax(kiln.tensor([[0., 2.], [3., 3.]]).to_sparse(), 1).values()
    tensor([1.0000, 0.5000, 0.5000])
    """
    return _sparse_arg("softmax", input).softmax(dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The logarithm of softmax over the stored elements along dim.

    dtype: that of the result.

    >>> kiln.sparse.log_softmax(kiln.tensor([[0., 2.], [3., 3.]]).to_sparse(), 1).values()
    tensor([ 0.0000, -0.6931, -0.6931])
    """
    return _sparse_arg("log_softmax", input).log_softmax(dim, dtype)
