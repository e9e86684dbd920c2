"""A continuous relative of the Bernoulli distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from . import constraints
from ._probs_or_logits import _BinaryProbs
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(_BinaryProbs):
    """The log-odds of RelaxedBernoulli: (logits + noise) / temperature, with logistic noise.

    temperature: > 0. probs: from 0 to 1. logits: the log-odds; give one of the two. validate_args:
    as in Distribution.

    >>> relaxed = kiln.distributions.relaxed_bernoulli
    >>> relaxed.LogitRelaxedBernoulli(1., probs=0.5).log_prob(kiln.tensor(0.)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(kiln.rand(shape, dtype=self._param.dtype, device=self._param.device))
        noise = uniform.log() - (-uniform).log1p()
        return (noise + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        temperature, logits, value = broadcast_all(self.temperature, self.logits, value)
        difference = logits - value * temperature
        return temperature.log() + difference - 2 * F.softplus(difference)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers of (0, 1) that can be differentiated, near 0 or 1 if the temperature is low.

    temperature: > 0. probs: of 1, from 0 to 1. logits: the log-odds; give one of the two.
    validate_args: as in Distribution. (Maddison, Mnih and Teh, 2017; Jang, Gu and Poole, 2017)

    >>> kiln.distributions.RelaxedBernoulli(1., probs=0.5).log_prob(kiln.tensor(0.25)).exp()
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=False)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor | float:
        """The lower, the nearer are the draws to 0 and 1."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
