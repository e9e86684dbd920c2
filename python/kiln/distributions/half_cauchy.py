"""The half-Cauchy distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._half import _Half
from .cauchy import Cauchy

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(_Half):
    """|x| for x of a Cauchy distribution around 0. Its mean is infinite.

    scale: the median, > 0. validate_args: as in Distribution.

    >>> kiln.distributions.HalfCauchy(2.).cdf(kiln.tensor(2.))
    tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        """Infinite."""
        return kiln.full_like(self.scale, kiln.inf)

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return self.base_dist.variance
