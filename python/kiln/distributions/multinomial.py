"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from .. import errors
from . import constraints
from ._probs_or_logits import _ClassProbs
from .binomial import Binomial
from .categorical import Categorical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["Multinomial"]


class Multinomial(_ClassProbs):
    """How often each of K classes comes in a number of draws.

    total_count: the number of draws, an int. probs: [..., K], >= 0; divided by their sum. logits:
    [..., K], logs of probabilities up to a constant; give one of the two. validate_args: as in
    Distribution.

    >>> coins = kiln.distributions.Multinomial(2, probs=kiln.tensor([0.5, 0.5]))
    >>> coins.log_prob(kiln.tensor([1., 1.])).exp()
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise errors.NotImplementedError(
                f"Multinomial: total_count must be one int >= 0; got {total_count!r}"
            )
        self.total_count = total_count
        self._set(probs, logits)
        shape = self._param.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        """Vectors of counts with a sum of at most total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with kiln.no_grad():
            draws = Categorical(self.probs, validate_args=False)
            drawn = draws.sample((*sample_shape, self.total_count))
            # The dim of the draws goes to the end, and is counted.
            drawn = drawn.movedim(len(sample_shape), -1)
            counts = self._param.new_zeros(self._extended_shape(sample_shape))
            return counts.scatter_add(-1, drawn, counts.new_ones(drawn.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = value.to(self._param.dtype)
        orders = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        impossible = (value == 0) & (self.logits == -kiln.inf)
        logits = kiln.where(impossible, 0.0, self.logits)
        return orders + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """n H - log n! + sum_k E log(x_k!), where each count x_k is binomial."""
        n = self.total_count
        each = Binomial(n, probs=self.probs, validate_args=False)
        counts = each.enumerate_support(False)
        expected = (each.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        one = Categorical(self.probs, validate_args=False).entropy()
        return n * one - math.lgamma(n + 1) + expected
