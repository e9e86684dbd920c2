"""The inverse gamma distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for x of Gamma(concentration, rate).

    concentration: > 0. rate: > 0. validate_args: as in Distribution.

    >>> kiln.distributions.InverseGamma(3., 2.).mean
    tensor(1.)
    """

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        base = Gamma(concentration, rate, validate_args=False)
        inverse = PowerTransform(-kiln.ones_like(base.rate).detach())
        super().__init__(base, inverse, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The concentration of 1 / x."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of 1 / x."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        mean = self.rate / (self.concentration - 1)
        return kiln.where(self.concentration > 1, mean, kiln.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        variance = self.rate**2 / ((c - 1) ** 2 * (c - 2))
        return kiln.where(c > 2, variance, kiln.inf)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
