"""Categorical distributions of one-hot vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from . import constraints
from ._probs_or_logits import _ClassProbs
from .categorical import Categorical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(_ClassProbs):
    """A class as a vector of K elements, of which one is 1 and the others are 0.

    probs: [..., K], >= 0; divided by their sum. logits: [..., K], logs of probabilities up to a
    constant; give one of the two. validate_args: as in Distribution.

    >>> kiln.distributions.OneHotCategorical(probs=kiln.tensor([0., 1.])).sample()
    tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set(probs, logits)
        shape = self._param.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def _categorical(self) -> Categorical:
        if self._given == "probs":
            return Categorical(probs=self.probs, validate_args=False)
        return Categorical(logits=self.logits, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self._param.argmax(-1), self._num_events).to(self._param.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return F.one_hot(drawn, self._num_events).to(self._param.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = kiln.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical, whose draws pass gradients on as if they were the probabilities.

    probs, logits, validate_args: as in OneHotCategorical. The gradients are biased, but often good
    enough to train with (Bengio, Leonard and Courville, 2013).

    >>> probs = kiln.tensor([0.25, 0.75], requires_grad=True)
    >>> draw = kiln.distributions.OneHotCategoricalStraightThrough(probs=probs).rsample()
    >>> draw.sum(), draw.requires_grad
    (tensor(1., grad_fn=<sum>), True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        draws = self.sample(sample_shape)
        return draws + (self.probs - self.probs.detach())
