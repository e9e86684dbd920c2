"""Multivariate normal distributions with few common causes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from .. import errors
from . import constraints
from ._shapes import check_dims, diagonal, expanded
from .distribution import Distribution
from .utils import lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of D elements with the covariance matrix W W^T + diag(d), where W is narrow.

    loc: the mean, [..., D]. cov_factor: W, [..., D, R], with R much smaller than D. cov_diag: d,
    [..., D], > 0. validate_args: as in Distribution.

    Densities cost R^3 + D R^2 instead of D^3, by the identities of Woodbury and Sylvester.

    >>> factor, diag = kiln.ones(2, 1), kiln.ones(2)
    >>> normal = kiln.distributions.LowRankMultivariateNormal(kiln.zeros(2), factor, diag)
    >>> normal.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        owner = "LowRankMultivariateNormal"
        check_dims(owner, "loc", loc)
        check_dims(owner, "cov_factor", cov_factor, 2)
        check_dims(owner, "cov_diag", cov_diag)
        size = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != size or cov_diag.shape[-1:] != size:
            raise errors.ValueError(
                f"{owner}: cov_factor must be [..., {size[0]}, R] and cov_diag"
                f" [..., {size[0]}]; got {list(cov_factor.shape)} and {list(cov_diag.shape)}"
            )
        batch = kiln.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        # What was given, without the dims that it is expanded to.
        self._factor, self._diag = cov_factor, cov_diag
        self.loc = expanded(loc, (*batch, *size))
        self.cov_factor = expanded(cov_factor, (*batch, *cov_factor.shape[-2:]))
        self.cov_diag = expanded(cov_diag, (*batch, *size))
        super().__init__(batch, size, validate_args=validate_args)
        scaled = self._factor.mT / self._diag.unsqueeze(-2)
        identity = kiln.eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self._capacitance = kiln.linalg.cholesky(identity + scaled @ self._factor)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance matrix."""
        variance = (self._factor**2).sum(-1) + self._diag
        return variance.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix, [..., D, D]."""
        matrix = self._factor @ self._factor.mT + self._diag.diag_embed()
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return kiln.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        scaled = self._factor.mT / self._diag.unsqueeze(-2)
        scaled = scaled.expand((*self._capacitance.shape[:-2], *scaled.shape[-2:]))
        solved = kiln.linalg.solve_triangular(self._capacitance, scaled, upper=False)
        matrix = (1 / self._diag).diag_embed() - solved.mT @ solved
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype, device = self.loc.dtype, self.loc.device
        rank = self._factor.shape[-1]
        common = kiln.randn((*shape[:-1], rank, 1), dtype=dtype, device=device)
        own = kiln.randn(shape, dtype=dtype, device=device)
        return self.loc + (self._factor @ common).squeeze(-1) + self._diag.sqrt() * own

    def _log_det(self) -> Tensor:
        inner = diagonal(self._capacitance).log().sum(-1)
        return 2 * inner + self._diag.log().sum(-1)

    def _squared_distance(self, difference: Tensor) -> Tensor:
        weighted = difference / self._diag
        inner = self._factor.mT @ weighted.unsqueeze(-1)
        batch = kiln.broadcast_shapes(inner.shape[:-2], self._capacitance.shape[:-2])
        capacitance = self._capacitance.expand((*batch, *self._capacitance.shape[-2:]))
        inner = inner.expand((*batch, *inner.shape[-2:]))
        solved = kiln.linalg.solve_triangular(capacitance, inner, upper=False)
        return (difference * weighted).sum(-1) - (solved**2).sum((-2, -1))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = self._squared_distance(value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + distance)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
