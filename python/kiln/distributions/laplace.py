"""The Laplace distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Exponential distances to both sides: exp(-|x - loc| / scale) / (2 scale).

    loc: the mean. scale: > 0. validate_args: as in Distribution.

    >>> kiln.distributions.Laplace(0., 2.).log_prob(kiln.tensor(0.)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # Of [0, 1), never at the upper end, whose quantile is infinite; the lower end is moved.
        uniform = kiln.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(uniform.clamp(min=kiln.finfo(uniform.dtype).tiny))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return 0.5 - 0.5 * z.sign() * kiln.expm1(-z.abs())

    def icdf(self, value: Tensor) -> Tensor:
        centred = value - 0.5
        # For values near 0 the subtraction loses digits that the log needs.
        left = kiln.where(value < 0.5, value, 0.5)
        tail = kiln.where(value < 0.5, (2 * left).log(), (-2 * centred.abs()).log1p())
        return self.loc - self.scale * centred.sign() * tail

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
