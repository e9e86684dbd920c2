"""Statistics of many points: histograms of several dims, decompositions of low rank."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from . import _C, linalg, return_types

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._C import Tensor

_indices = range
_Histogram: Any = collections.namedtuple(  # type: ignore[name-match]
    "histogramdd", ["hist", "bin_edges"], module="kiln.return_types"
)
_Histogram.__doc__ = "What the op gives."
return_types._add(_Histogram)


def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """(counts, edges) of points [..., N] in boxes of N dims.

    bins: how many equal intervals, for all dims or for each, or the ascending edges of each dim.
    range: the ends of each dim in turn, 2 N numbers; the extent of the points without it. A point
    counts its weight, or 1; density: divided so that the histogram integrates to 1.

    >>> counts, edges = kiln.histogramdd(kiln.tensor([[0., 0.], [1., 1.]]), bins=2)
    >>> counts
    tensor([[1., 0.],
            [0., 1.]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"histogramdd: expected points [..., N]; got {list(input.shape)}")
    points = input.reshape(-1, input.shape[-1])
    n = points.shape[1]
    of_dims: list[Any] = [bins] * n if isinstance(bins, int) else list(bins)
    if len(of_dims) != n:
        raise RuntimeError(f"histogramdd: expected bins for each of {n} dims; got {len(of_dims)}")
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(f"histogramdd: expected {2 * n} ends of ranges; got {len(range)}")
    ends: Any = range
    edges = [
        b.to(points.dtype)
        if isinstance(b, _C.Tensor)
        else _C.histogram(points[:, i].contiguous(), b, range=ends and tuple(ends[2 * i : 2 * i + 2]))[1]
        for i, b in enumerate(of_dims)
    ]
    sizes = [len(e) - 1 for e in edges]
    box = _C.zeros(len(points), dtype=_C.int64)
    inside = _C.ones(len(points), dtype=_C.bool_)
    for column, edge, size in zip(points.unbind(1), edges, sizes):
        column = column.contiguous()
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        at = _C.searchsorted(edge, column, right=True) - 1
        box = box * size + at.clamp(0, size - 1)
    total = 1
    for size in sizes:
        total *= size
    counted = points.new_ones(len(points)) if weight is None else weight.reshape(-1).to(points.dtype)
    counts = points.new_zeros(total).index_add(0, box[inside], counted[inside]).reshape(sizes)
    if density:
        for d, edge in enumerate(edges):
            widths = edge.diff()
            counts = counts / widths.reshape([-1 if i == d else 1 for i in _indices(n)])
        counts = counts / counted[inside].sum()
    return _Histogram(counts, tuple(edges))


def svd_lowrank(
    A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with A - M near U diag(S) V^H of rank q, by a randomized method.

    Algorithm 5.1 of Halko, Martinsson and Tropp (2009), arXiv:0909.4061, after niter iterations.

    >>> u, s, v = kiln.svd_lowrank(kiln.tensor([[3., 0.], [0., 4.]]), q=2)
    >>> s.round()
    tensor([4., 3.])
    """
    matrix = A if M is None else A - M
    m, n = matrix.shape[-2:]
    wide = m < n
    if wide:
        matrix = matrix.mH
    random = _C.randn(matrix.shape[-1], q, dtype=matrix.dtype, device=matrix.device)
    basis = linalg.qr(matrix @ random)[0]
    for _ in _indices(niter):
        basis = linalg.qr(matrix.mH @ basis)[0]
        basis = linalg.qr(matrix @ basis)[0]
    U, S, Vh = linalg.svd(basis.mH @ matrix, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of the q principal components of the rows of A: the columns of V.

    q: min(6, *A.shape[-2:]) unless given; center: the columns' means are subtracted first.

    >>> u, s, v = kiln.pca_lowrank(kiln.tensor([[1., 0.], [-1., 0.], [1., 0.], [-1., 0.]]), q=1)
    >>> s.round()
    tensor([2.])
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"pca_lowrank: expected 0 <= q <= {min(m, n)}; got {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: expected niter >= 0; got {niter}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
