"""The negative binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from . import constraints
from ._probs_or_logits import _BinaryProbs
from .gamma import Gamma

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(_BinaryProbs):
    """How many trials succeed before total_count of them fail.

    total_count: r >= 0; it need not be whole. probs: that a trial succeeds, of [0, 1). logits: its
    log-odds; give one of the two. validate_args: as in Distribution.

    >>> kiln.distributions.NegativeBinomial(1., probs=0.5).log_prob(kiln.tensor([0., 1.])).exp()
    tensor([0.5000, 0.2500])
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._set(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # A Poisson distribution whose rate is random.
        with kiln.no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return kiln.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        r, logits = self.total_count, self.logits
        weights = r * F.logsigmoid(-logits) + value * F.logsigmoid(logits)
        choices = (r + value).lgamma() - (1 + value).lgamma() - r.lgamma()
        return weights + kiln.where(r + value == 0, 0.0, choices)
