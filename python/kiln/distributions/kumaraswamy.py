"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers of [0, 1] with cdf 1 - (1 - x^a)^b: like Beta, but with simple formulas.

    concentration1: a > 0. concentration0: b > 0. validate_args: as in Distribution.

    >>> kiln.distributions.Kumaraswamy(2., 1.).cdf(kiln.tensor(0.5))
    tensor(0.2500)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = kiln.zeros_like(self.concentration0)
        base = Uniform(zeros, zeros + 1, validate_args=False)
        # x = (1 - u^(1 / b))^(1 / a)
        transforms = [
            PowerTransform(1 / self.concentration0),
            AffineTransform(1, -1),
            PowerTransform(1 / self.concentration1),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """E x^n = b B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return (b.log() + first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a b - 1))^(1 / a) for a, b >= 1, not both 1; else NaN."""
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        ratio = (a - 1) / (a * b - 1)
        return kiln.where(inside, ratio ** (1 / a), kiln.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
