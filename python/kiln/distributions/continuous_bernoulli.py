"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._probs_or_logits import _BinaryProbs
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_BinaryProbs, ExponentialFamily):
    """Numbers x of [0, 1] with a density proportional to probs^x (1 - probs)^(1 - x).

    probs: of (0, 1). logits: the log-odds; give one of the two. lims: between these probs, formulas
    that divide by 1 - 2 probs are replaced by their series. validate_args: as in Distribution.
    (Loaiza-Ganem and Cunningham, 2019)

    >>> kiln.distributions.ContinuousBernoulli(probs=0.5).log_prob(kiln.tensor([0., 1.]))
    tensor([0., 0.])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set(probs, logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)
        if probs is not None:
            # The logs of 0 and 1 - 1 must be finite; after the check, which allows both.
            self.__dict__["probs"] = clamp_probs(self.probs)

    def _near_half(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where the series is used, probs elsewhere, and the distance from 1 / 2 there."""
        near = (self.probs > self._lims[0]) & (self.probs < self._lims[1])
        far = kiln.where(near, self._lims[0], self.probs)
        return near, far, kiln.where(near, self.probs - 0.5, 0.0)

    def _log_constant(self) -> Tensor:
        """The log of what makes the density integrate to 1."""
        near, p, d = self._near_half()
        exact = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        return kiln.where(near, math.log(2) + (4 / 3 + 104 / 45 * d**2) * d**2, exact)

    @property
    def mean(self) -> Tensor:
        near, p, d = self._near_half()
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return kiln.where(near, 0.5 + (1 / 3 + 16 / 45 * d**2) * d, exact)

    @property
    def variance(self) -> Tensor:
        near, p, d = self._near_half()
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        return kiln.where(near, 1 / 12 - (1 / 15 - 128 / 945 * d**2) * d**2, exact)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(kiln.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        weights = value * logits - kiln.nn.functional.softplus(logits)
        return weights + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        near, p, _ = self._near_half()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = kiln.where(near, value, exact)
        return kiln.where(value <= 0, 0.0, kiln.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        near, p, _ = self._near_half()
        log_failure = (-p).log1p()
        exact = (-p + value * (2 * p - 1)).log1p() - log_failure
        return kiln.where(near, value, exact / (p.log() - log_failure))

    def entropy(self) -> Tensor:
        log_failure = (-self.probs).log1p()
        slope = self.probs.log() - log_failure
        return -self.mean * slope - log_failure - self._log_constant()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """log((e^x - 1) / x)."""
        (x,) = natural_params
        near = x.abs() < 1e-2
        far = kiln.where(near, 1.0, x)
        return kiln.where(near, x / 2 + x**2 / 24, kiln.expm1(far).abs().log() - far.abs().log())
