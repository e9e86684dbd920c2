"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._matrices import factor_of_inverse, only_matrix, squared_distance
from ._shapes import check_dims, diagonal, expanded
from .distribution import Distribution
from .utils import lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """Normal vectors of D elements, with a covariance matrix.

    loc: the mean, [..., D]. One of three gives the covariance, each [..., D, D]: covariance_matrix;
    precision_matrix, its inverse; scale_tril, its lower Cholesky factor, which is the fastest.
    validate_args: as in Distribution.

    >>> normal = kiln.distributions.MultivariateNormal(kiln.zeros(2), scale_tril=2 * kiln.eye(2))
    >>> normal.variance, normal.log_prob(kiln.zeros(2))
    (tensor([4., 4.]), tensor(-3.2242))
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_dims("MultivariateNormal", "loc", loc)
        name, matrix = only_matrix(
            "MultivariateNormal",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        batch = kiln.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = expanded(matrix, (*batch, *matrix.shape[-2:]))
        self.loc = expanded(loc, (*batch, loc.shape[-1]))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        # Of the matrices that were given, without the dims that they are expanded to.
        if name == "scale_tril":
            self._factor = matrix
        elif name == "covariance_matrix":
            self._factor = kiln.linalg.cholesky(matrix)
        else:
            self._factor = factor_of_inverse(matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance matrix."""
        return self._factor.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        matrix = self._factor @ self._factor.mT
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        matrix = kiln.cholesky_inverse(self._factor)
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = (self._factor**2).sum(-1)
        return variance.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = kiln.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._factor @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return diagonal(self._factor).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = squared_distance(self._factor, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * constant + self._half_log_det()).expand(self._batch_shape)
