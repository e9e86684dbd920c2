"""Cholesky factors and what is computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from .. import errors
from ._shapes import check_dims

if TYPE_CHECKING:
    from .._C import Tensor


def only_matrix(owner: str, **matrices: Tensor | None) -> tuple[str, Tensor]:
    """The name and value of the one matrix that was given."""
    given = [(name, value) for name, value in matrices.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(name for name, _ in given) if given else "none"
        raise errors.ValueError(f"{owner}: expected one of {', '.join(matrices)}; got {got}")
    name, matrix = given[0]
    check_dims(owner, name, matrix, 2)
    return name, matrix


def factor_of_inverse(matrix: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse of positive definite matrices.

    With J for the exchange of first and last: if J matrix J = C C^T, then matrix = U U^T with the
    upper triangular U = J C J, and the inverse is U^-T U^-1, where U^-T is lower triangular.
    """
    upper = kiln.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1))
    identity = kiln.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return kiln.linalg.solve_triangular(upper.mT, identity, upper=False)


def squared_distance(factor: Tensor, difference: Tensor) -> Tensor:
    """d^T (L L^T)^-1 d for L = factor, [..., D, D], and d = difference, [..., D]."""
    if factor.dim() == 2:
        # One matrix for all: a single solve with many right sides.
        columns = difference.reshape((-1, difference.shape[-1])).T
        solved = kiln.linalg.solve_triangular(factor, columns, upper=False)
        return (solved**2).sum(0).reshape(difference.shape[:-1])
    solved = kiln.linalg.solve_triangular(factor, difference.unsqueeze(-1), upper=False)
    return (solved**2).sum((-2, -1))


def trace_of_ratio(q_factor: Tensor, p_factor: Tensor) -> Tensor:
    """tr(Q^-1 P) for matrices given by their factors: the squared elements of L_Q^-1 L_P."""
    batch = kiln.broadcast_shapes(q_factor.shape[:-2], p_factor.shape[:-2])
    q = q_factor.expand((*batch, *q_factor.shape[-2:]))
    p = p_factor.expand((*batch, *p_factor.shape[-2:]))
    return (kiln.linalg.solve_triangular(q, p, upper=False) ** 2).sum((-2, -1))
