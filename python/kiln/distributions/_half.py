"""Distributions of |x| for an x whose distribution is the same on both sides of 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from .cauchy import Cauchy
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

if TYPE_CHECKING:
    from .._C import Tensor


class _Half(TransformedDistribution):
    has_rsample = True
    base_dist: Normal | Cauchy

    def __init__(self, base: Normal | Cauchy, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return kiln.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        density = self.base_dist.log_prob(value) + math.log(2)
        return kiln.where(value >= 0, density, -kiln.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
