"""The Pareto distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

if TYPE_CHECKING:
    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Numbers from scale on with a heavy tail: P(x > t) = (scale / t)^alpha.

    scale: the smallest value, > 0. alpha: > 0. validate_args: as in Distribution.

    >>> kiln.distributions.Pareto(1., 2.).cdf(kiln.tensor(2.))
    tensor(0.7500)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(
        self,
        scale: Tensor | float,
        alpha: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        transforms = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        """The numbers from scale on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """scale alpha / (alpha - 1); infinite for alpha <= 1."""
        a = kiln.where(self.alpha > 1, self.alpha, 2.0)
        return kiln.where(self.alpha > 1, self.scale * a / (a - 1), kiln.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        """scale^2 alpha / ((alpha - 1)^2 (alpha - 2)); infinite for alpha <= 2."""
        a = kiln.where(self.alpha > 2, self.alpha, 3.0)
        variance = self.scale**2 * a / ((a - 1) ** 2 * (a - 2))
        return kiln.where(self.alpha > 2, variance, kiln.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)
