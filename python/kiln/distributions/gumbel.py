"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The largest of many numbers: exp(-(z + exp(-z))) / scale with z = (x - loc) / scale.

    loc: the mode. scale: > 0. validate_args: as in Distribution.

    >>> kiln.distributions.Gumbel(0., 1.).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = kiln.finfo(self.loc.dtype)
        low = kiln.full_like(self.loc, limits.tiny)
        # x = loc - scale log(-log(u)); u is neither 0 nor 1.
        base = Uniform(low, kiln.full_like(low, 1 - limits.eps), validate_args=False)
        transforms = [
            ExpTransform().inv,
            AffineTransform(0, -kiln.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return math.pi**2 / 6 * self.scale**2

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
