"""The categorical distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from . import constraints
from ._probs_or_logits import _ClassProbs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["Categorical"]


class Categorical(_ClassProbs):
    """A class from 0 to K - 1, with a probability each.

    probs: [..., K], >= 0; divided by their sum. logits: [..., K], logs of probabilities up to a
    constant; give one of the two. validate_args: as in Distribution.

    >>> die = kiln.distributions.Categorical(probs=kiln.tensor([1., 1., 2.]))
    >>> die.probs, die.log_prob(kiln.tensor(2)).exp()
    (tensor([0.2500, 0.2500, 0.5000]), tensor(0.5000))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set(probs, logits)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        """The classes from 0 to K - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """NaN: classes are names, not numbers."""
        return self._param.new_full(self._batch_shape, kiln.nan)

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """NaN: classes are names, not numbers."""
        return self._param.new_full(self._batch_shape, kiln.nan)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = kiln.Size(sample_shape)
        if shape.numel() == 0 or self._batch_shape.numel() == 0:
            return kiln.zeros(
                shape + self._batch_shape, dtype=kiln.int64, device=self._param.device
            )
        with kiln.no_grad():
            rows = self.probs.reshape((-1, self._num_events))
            drawn = kiln.multinomial(rows, shape.numel(), True)
            return drawn.T.reshape(shape + self._batch_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        shape = kiln.broadcast_shapes(value.shape, self._batch_shape)
        index = value.long().expand(shape).unsqueeze(-1)
        return self.logits.expand((*shape, self._num_events)).gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        # A class without probability adds nothing: 0 times the smallest finite log.
        logs = self.logits.clamp(min=kiln.finfo(self.logits.dtype).min)
        return -(logs * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = kiln.arange(self._num_events, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((self._num_events, *self._batch_shape)) if expand else values
