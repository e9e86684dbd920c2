"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import constraints
from ._half import _Half
from .normal import Normal

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(_Half):
    """|x| for normal x with mean 0.

    scale: the standard deviation of x, > 0. validate_args: as in Distribution.

    >>> kiln.distributions.HalfNormal(1.).mean
    tensor(0.7979)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)
