"""The Weibull distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Lifetimes: P(x > t) = exp(-(t / scale)^k), with k = concentration.

    scale: > 0. concentration: > 0; above 1, things fail the sooner the older they are.
    validate_args: as in Distribution.

    >>> kiln.distributions.Weibull(2., 1.).mean
    tensor(2.)
    """

    arg_constraints = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(kiln.ones_like(self.scale), validate_args=False)
        transforms = [PowerTransform(1 / self.concentration), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        return (1 + n / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        above = k.clamp(min=1)
        return self.scale * ((above - 1) / above) ** (1 / above)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (self._moment(2) - self._moment(1) ** 2)

    def entropy(self) -> Tensor:
        k = self.concentration
        return euler_constant * (1 - 1 / k) + (self.scale / k).log() + 1
