"""Batch dims that become dims of the event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import kiln

from .. import errors
from . import constraints
from ._shapes import sum_rightmost
from .constraints import Constraint
from .distribution import Distribution, check_distribution

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dims belong to the event; log_prob is summed over them.

    base_distribution: the distribution. reinterpreted_batch_ndims: how many dims.
    validate_args: as in Distribution.

    >>> normal = kiln.distributions.Normal(kiln.zeros(3), 1.)
    >>> joint = kiln.distributions.Independent(normal, 1)
    >>> joint.batch_shape, joint.event_shape, joint.log_prob(kiln.zeros(3))
    (kiln.Size([]), kiln.Size([3]), tensor(-2.7568))
    """

    arg_constraints: Mapping[str, Constraint] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        check_distribution("Independent", "base_distribution", base_distribution)
        dims = len(base_distribution.batch_shape)
        if not 0 <= reinterpreted_batch_ndims <= dims:
            raise errors.ValueError(
                "Independent: reinterpreted_batch_ndims must be from 0 to the number of batch dims,"
                f" {dims}; got {reinterpreted_batch_ndims}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event_dim = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        split = len(shape) - event_dim
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Independent, _instance)
        new.__dict__.update(self.__dict__)
        shape = kiln.Size(batch_shape)
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(shape + inner)
        new._batch_shape = shape
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Constraint:
        """The support of the base distribution, with the dims of the event."""
        result: Constraint = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            result = constraints.independent(result, self.reinterpreted_batch_ndims)
        return result

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise errors.NotImplementedError(
                "Independent: the values of a whole event are not enumerated"
            )
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
