"""Distributions that are given by probabilities or by logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from .. import errors
from ._shapes import check_dims
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


class _ProbsOrLogits(Distribution):
    """Keeps what was given; the other is computed when somebody asks for it."""

    _is_binary = True

    def _take(self, **parameters: Any) -> str:
        """The name of the one that was given; raises if it is none or both."""
        given = [name for name, value in parameters.items() if value is not None]
        if len(given) != 1:
            names = " or ".join(parameters)
            got = " and ".join(given) if given else "none"
            raise errors.ValueError(f"{type(self).__name__}: expected one of {names}; got {got}")
        return given[0]

    @lazy_property
    def logits(self) -> Tensor:
        """The logits: log-odds of each event, or the logs of the classes' probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self) -> Tensor:
        """What was given."""
        values = self.__dict__
        given: Tensor = values["probs"] if self._given == "probs" else values["logits"]
        return given

    _given: str

    @property
    def param_shape(self) -> kiln.Size:
        """The shape of probs and logits."""
        return kiln.Size(self._param.shape)


class _BinaryProbs(_ProbsOrLogits):
    """Each element is the probability, or the log-odds, of one event."""

    def _set(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Keeps the one that was given; the others, broadcast to its shape."""
        self._given = self._take(probs=probs, logits=logits)
        value, *rest = broadcast_all(probs if logits is None else logits, *others)
        self.__dict__[self._given] = value
        return tuple(rest)


class _ClassProbs(_ProbsOrLogits):
    """The last dim holds the probabilities of the classes, which are made to sum to 1."""

    _is_binary = False

    def _set(self, probs: Tensor | None, logits: Tensor | None) -> None:
        self._given = self._take(probs=probs, logits=logits)
        check_dims(type(self).__name__, self._given, probs if logits is None else logits)
        if probs is not None:
            self.__dict__["probs"] = probs / probs.sum(-1, keepdim=True)
        elif logits is not None:
            self.__dict__["logits"] = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
