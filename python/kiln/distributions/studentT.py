"""Student's t distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._standard_gamma import log_standard_gamma
from .distribution import Distribution
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal number divided by sqrt(c / df), with c of Chi2(df), times scale, plus loc.

    df: the degrees of freedom, > 0. loc: the mode. scale: > 0. validate_args: as in Distribution.

    rsample has exact gradients.

    >>> kiln.distributions.StudentT(4.).variance
    tensor(2.)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """loc; NaN for df <= 1."""
        return kiln.where(self.df > 1, self.loc, kiln.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 df / (df - 2); infinite for df <= 2, NaN for df <= 1."""
        finite = kiln.where(self.df > 2, self.df, 3.0)
        variance = self.scale**2 * finite / (finite - 2)
        variance = kiln.where(self.df > 2, variance, kiln.inf)
        return kiln.where(self.df > 1, variance, kiln.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = kiln.randn(shape, dtype=self.df.dtype, device=self.df.device)
        half = 0.5 * self.df.expand(shape)
        # In logs: for small df, c underflows.
        log_ratio = log_standard_gamma(half) - half.double().log()
        return self.loc + self.scale * noise * (-0.5 * log_ratio).exp().to(noise.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        half = 0.5 * self.df
        constant = (half + 0.5).lgamma() - half.lgamma()
        constant = constant - self.scale.log() - 0.5 * (math.pi * self.df).log()
        return constant - (half + 0.5) * (z**2 / self.df).log1p()

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        beta = half.lgamma() + 0.5 * math.log(math.pi) - (half + 0.5).lgamma()
        slope = (half + 0.5).digamma() - half.digamma()
        return self.scale.log() + (half + 0.5) * slope + 0.5 * self.df.log() + beta
