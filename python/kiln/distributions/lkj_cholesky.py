"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from .. import errors
from . import constraints
from ._shapes import diagonal
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices with a density proportional to det(L L^T)^(c - 1),
    with c = concentration, in terms of the matrices.

    dim: the number D of rows, >= 2. concentration: > 0; 1 gives all correlation matrices alike,
    more of it those near the identity. validate_args: as in Distribution.

    Draws are made row by row, by the onion method (Lewandowski, Kurowicka and Joe, 2009).

    >>> lkj = kiln.distributions.LKJCholesky(2, 1.)
    >>> factor = lkj.sample()
    >>> (factor @ factor.mT).diagonal(), lkj.log_prob(kiln.eye(2)).exp()
    (tensor([1., 1.]), tensor(0.5000))
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self,
        dim: int,
        concentration: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(dim, int) or dim < 2:
            raise errors.ValueError(f"LKJCholesky: dim must be an int >= 2; got {dim!r}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        c, n = self.concentration, self.dim
        with kiln.no_grad():
            # Row i has i elements before the diagonal: a direction, and the square of its length.
            rows = kiln.arange(1, n, dtype=c.dtype, device=c.device)
            length = Beta(rows / 2, c.unsqueeze(-1) + (n - 1 - rows) / 2, validate_args=False)
            squares = length.sample(sample_shape).unsqueeze(-1)
            direction = kiln.randn((*shape[:-2], n - 1, n), dtype=c.dtype, device=c.device).tril()
            direction = direction / (direction**2).sum(-1, keepdim=True).sqrt()
            below = squares.sqrt() * direction
            first = below.new_zeros((*shape[:-2], 1, n))
            below = kiln.cat([first, below], -2).tril(-1)
            ones = below.new_ones((*shape[:-2], 1))
            tiny = kiln.finfo(c.dtype).tiny
            rest = (1 - squares.squeeze(-1)).clamp(min=tiny).sqrt()
            return below + kiln.cat([ones, rest], -1).diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c, n = self.concentration, self.dim
        lengths = diagonal(value)[..., 1:]
        rows = kiln.arange(2, n + 1, dtype=c.dtype, device=c.device)
        powers = 2 * (c - 1).unsqueeze(-1) + n - rows
        weights = (powers * lengths.log()).sum(-1)
        alpha = c + 0.5 * (n - 1)
        constant = 0.5 * (n - 1) * math.log(math.pi) - (n - 1) * alpha.lgamma()
        return weights - constant - (alpha - 0.5).mvlgamma(n - 1)
