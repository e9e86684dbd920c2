"""The F distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._standard_gamma import log_standard_gamma
from .distribution import Distribution
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of c1 / df1 and c2 / df2, with c1 of Chi2(df1) and c2 of Chi2(df2).

    df1, df2: the degrees of freedom, > 0. validate_args: as in Distribution.

    rsample has exact gradients.

    >>> kiln.distributions.FisherSnedecor(1., 4.).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """df2 / (df2 - 2); NaN for df2 <= 2."""
        df2 = kiln.where(self.df2 > 2, self.df2, kiln.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """NaN for df1 <= 2."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return kiln.where(self.df1 > 2, mode, kiln.nan)

    @property
    def variance(self) -> Tensor:
        """NaN for df2 <= 4."""
        df1, df2 = self.df1, kiln.where(self.df2 > 4, self.df2, kiln.nan)
        return 2 * df2**2 * (df1 + df2 - 2) / (df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        df1, df2 = self.df1.expand(shape).double(), self.df2.expand(shape).double()
        above = log_standard_gamma(df1 / 2) - df1.log()
        below = log_standard_gamma(df2 / 2) - df2.log()
        draws = (above - below).exp().to(self.df1.dtype)
        return draws.clamp(min=kiln.finfo(draws.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log()
        return constant + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
