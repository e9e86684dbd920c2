"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """How far rare values are above a threshold: P(x > t) = (1 + k (t - loc) / scale)^(-1 / k).

    loc: the threshold. scale: > 0. concentration: k; the tail is heavy for k > 0, exponential for
    k = 0, and ends at loc - scale / k for k < 0. validate_args: as in Distribution.

    >>> pareto = kiln.distributions.GeneralizedPareto(0., 1., 1.)
    >>> pareto.cdf(kiln.tensor([0., 1., 3.]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        """From loc on; up to loc - scale / concentration if that is negative."""
        k = self.concentration
        end = kiln.where(k < 0, self.loc - self.scale / kiln.where(k < 0, k, -1.0), kiln.inf)
        return constraints.interval(self.loc, end)

    def _is_exponential(self) -> tuple[Tensor, Tensor]:
        """Where the concentration counts as 0, and the concentration with 1 there.

        Between 0 and the rounding of its dtype it changes nothing that could be seen.
        """
        k = self.concentration
        zero = k.abs() < kiln.finfo(k.dtype).eps
        return zero, kiln.where(zero, 1.0, k)

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - k); infinite for k >= 1."""
        finite = self.concentration < 1
        k = kiln.where(finite, self.concentration, 0.0)
        return kiln.where(finite, self.loc + self.scale / (1 - k), kiln.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 / ((1 - k)^2 (1 - 2 k)); infinite for k >= 1 / 2."""
        finite = self.concentration < 0.5
        k = kiln.where(finite, self.concentration, 0.0)
        return kiln.where(finite, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), kiln.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(kiln.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(x > value)."""
        zero, k = self._is_exponential()
        z = (value - self.loc) / self.scale
        return kiln.where(zero, -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log P(x <= value)."""
        return (-self.log_survival_function(value).exp()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        zero, k = self._is_exponential()
        z = (value - self.loc) / self.scale
        tail = kiln.where(zero, -z, -(1 + 1 / k) * (k * z).log1p())
        return tail - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - self.log_survival_function(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, k = self._is_exponential()
        log_survival = (-value).log1p()
        z = kiln.where(zero, -log_survival, kiln.expm1(-k * log_survival) / k)
        return self.loc + self.scale * z

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)
