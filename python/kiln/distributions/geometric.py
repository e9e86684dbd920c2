"""The geometric distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from .. import errors
from . import constraints
from ._probs_or_logits import _BinaryProbs
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["Geometric"]


class Geometric(_BinaryProbs):
    """How many trials fail before the first one succeeds: (1 - probs)^k probs.

    probs: that a trial succeeds, of (0, 1]. logits: its log-odds; give one of the two.
    validate_args: as in Distribution.

    >>> kiln.distributions.Geometric(probs=0.5).log_prob(kiln.tensor([0., 1.])).exp()
    tensor([0.5000, 0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise errors.ValueError(f"Geometric: parameter probs must be > 0; got {self.probs}")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return kiln.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with kiln.no_grad():
            uniform = kiln.rand(shape, dtype=self._param.dtype, device=self._param.device)
            return ((-uniform).log1p() / (-self.probs.expand(shape)).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # Certain success leaves 0 log 0 for k = 0.
        failure = kiln.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-failure).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (F.softplus(self.logits) - self.logits * self.probs) / self.probs
