"""Mixtures of distributions of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import kiln

from .. import errors
from . import constraints
from .categorical import Categorical
from .constraints import Constraint
from .distribution import Distribution, check_distribution

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A draw from one of K distributions, which one is random: sum_k probs_k p_k(x).

    mixture_distribution: a Categorical of K classes. component_distribution: a distribution whose
    last batch dim has K elements. validate_args: as in Distribution.

    >>> d = kiln.distributions
    >>> which, parts = d.Categorical(kiln.ones(2)), d.Uniform(kiln.tensor([0., 1.]), 3.)
    >>> mixture = d.MixtureSameFamily(which, parts)
    >>> mixture.mean, mixture.cdf(kiln.tensor(3.))
    (tensor(1.7500), tensor(1.))
    """

    arg_constraints: Mapping[str, Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise errors.ValueError(
                "MixtureSameFamily: mixture_distribution must be a Categorical; got"
                f" {type(mixture_distribution).__name__}"
            )
        check_distribution("MixtureSameFamily", "component_distribution", component_distribution)
        mixture_shape = mixture_distribution.batch_shape
        batch = component_distribution.batch_shape
        count = mixture_distribution._num_events
        if not batch or batch[-1] != count:
            raise errors.ValueError(
                "MixtureSameFamily: the last batch dim of component_distribution must have"
                f" {count} elements, as mixture_distribution has classes; got {list(batch)}"
            )
        batch = batch[:-1]
        for mine, theirs in zip(reversed(mixture_shape), reversed(batch), strict=False):
            if mine != 1 and theirs != 1 and mine != theirs:
                raise errors.ValueError(
                    f"MixtureSameFamily: mixture_distribution.batch_shape {list(mixture_shape)} and"
                    f" component_distribution.batch_shape[:-1] {list(batch)} must fit"
                )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        super().__init__(batch, component_distribution.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component a draw is from."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last dim of its batch."""
        return self._component_distribution

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        shape = kiln.Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            shape + (self._num_component,)
        )
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        return new

    @constraints.dependent_property
    def support(self) -> Constraint:
        """What all components support."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        """The probabilities of the components, with a dim of 1 for each dim of the event."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1 for _ in self._event_shape)))

    @property
    def _dim(self) -> int:
        """The dim of the components, in values."""
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._dim)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances, and the variance of the means."""
        weights = self._weights()
        inner = (weights * self._component_distribution.variance).sum(self._dim)
        away = self._component_distribution.mean - self.mean.unsqueeze(self._dim)
        return inner + (weights * away**2).sum(self._dim)

    def cdf(self, value: Tensor) -> Tensor:
        value = value.unsqueeze(self._dim)
        parts = self._component_distribution.cdf(value)
        return (parts * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        parts = self._component_distribution.log_prob(value.unsqueeze(self._dim))
        return (parts + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = kiln.Size(sample_shape)
        with kiln.no_grad():
            draws = self._component_distribution.sample(shape)
            which = self._mixture_distribution.expand(self._batch_shape).sample(shape)
            index = which.reshape((*which.shape, 1, *(1 for _ in self._event_shape)))
            wanted = shape + self._batch_shape + (1,) + self._event_shape
            return draws.gather(self._dim, index.expand(wanted)).squeeze(self._dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
