"""The log-normal distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp(x) for normal x.

    loc: the mean of x. scale: the standard deviation of x, > 0. validate_args: as in Distribution.

    >>> kiln.distributions.LogNormal(0., 1.).cdf(kiln.tensor(1.))
    tensor(0.5000)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=False)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the log."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the log."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Tensor:
        spread = self.scale**2
        return kiln.expm1(spread) * (2 * self.loc + spread).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
