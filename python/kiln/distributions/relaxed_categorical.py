"""A continuous relative of the categorical distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._probs_or_logits import _ClassProbs
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import clamp_probs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(_ClassProbs):
    """The logs of RelaxedOneHotCategorical: log_softmax((logits + Gumbel noise) / temperature).

    temperature: > 0. probs: [..., K], >= 0; divided by their sum. logits: [..., K]; give one of the
    two. validate_args: as in Distribution.

    >>> relaxed = kiln.distributions.relaxed_categorical
    >>> relaxed.ExpRelaxedCategorical(1., probs=kiln.tensor([0.5, 0.5])).sample().shape
    kiln.Size([2])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # and their exp is in the simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set(probs, logits)
        shape = self._param.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(kiln.rand(shape, dtype=self._param.dtype, device=self._param.device))
        gumbel = -(-uniform.log()).log()
        return ((self.logits + gumbel) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, temperature = self._num_events, self.temperature
        log = temperature.log() if isinstance(temperature, kiln.Tensor) else math.log(temperature)
        scores = (self.logits - value * temperature).log_softmax(-1).sum(-1)
        return scores + math.lgamma(n) + (n - 1) * log


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors of K probabilities that can be differentiated, near one-hot at low temperatures.

    temperature: > 0. probs: [..., K], >= 0; divided by their sum. logits: [..., K], logs of
    probabilities up to a constant; give one of the two. validate_args: as in Distribution.
    (Maddison, Mnih and Teh, 2017; Jang, Gu and Poole, 2017)

    >>> relaxed = kiln.distributions.RelaxedOneHotCategorical(0.5, probs=kiln.tensor([0.5, 0.5]))
    >>> relaxed.sample().shape
    kiln.Size([2])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=False)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor | float:
        """The lower, the nearer are the draws to one-hot vectors."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logs of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
