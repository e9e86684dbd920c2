"""The gamma distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._standard_gamma import gammainc, standard_gamma
from .exp_family import ExponentialFamily
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution: rate^c x^(c - 1) exp(-rate x) / Gamma(c), with c = concentration.

    concentration: > 0, also called shape or alpha. rate: > 0, also called beta; the scale is
    1 / rate. validate_args: as in Distribution.

    rsample draws by Marsaglia and Tsang (2000). Its gradients are implicit and exact.

    >>> kiln.distributions.Gamma(1., 2.).log_prob(kiln.tensor(0.)).exp()
    tensor(2.)
    """

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        draws = standard_gamma(self.concentration.expand(shape)) / self.rate
        return draws.clamp(min=kiln.finfo(draws.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c, rate = self.concentration, self.rate
        return kiln.xlogy(c, rate) + kiln.xlogy(c - 1, value) - rate * value - c.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1 - c) * c.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return (x + 1).lgamma() - (x + 1) * (-y).log()
