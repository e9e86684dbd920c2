"""The binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from .. import errors
from . import constraints
from ._probs_or_logits import _BinaryProbs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["Binomial"]


class Binomial(_BinaryProbs):
    """How many of n trials succeed: n! / (k! (n - k)!) probs^k (1 - probs)^(n - k).

    total_count: n, a whole number >= 0 or a tensor of them. probs: that a trial succeeds, from 0 to
    1. logits: its log-odds; give one of the two. validate_args: as in Distribution.

    >>> kiln.distributions.Binomial(2, probs=0.5).log_prob(kiln.tensor([0., 1., 2.])).exp()
    tensor([0.2500, 0.5000, 0.2500])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._set(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        """The whole numbers from 0 to total_count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        mode = ((self.total_count + 1) * self.probs).floor()
        return kiln.minimum(mode, self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with kiln.no_grad():
            return kiln.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, value = self.total_count, value.to(self.total_count.dtype)
        choices = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return choices + value * self.logits - n * F.softplus(self.logits)

    def _count(self, what: str) -> int:
        """total_count, where it is the same for all."""
        low, high = int(self.total_count.min()), int(self.total_count.max())
        if low != high:
            raise errors.NotImplementedError(
                f"Binomial: {what} needs one total_count for all; got {low} to {high}"
            )
        return high

    def entropy(self) -> Tensor:
        self._count("entropy()")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._count("enumerate_support()") + 1
        values = kiln.arange(count, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((count, *self._batch_shape)) if expand else values
