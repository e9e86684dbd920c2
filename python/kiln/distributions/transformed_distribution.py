"""Distributions of functions of draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import kiln

from .. import errors
from . import constraints
from ._shapes import sum_rightmost
from .constraints import Constraint
from .distribution import Distribution, check_distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = f(x) for x of another one, with the density p(x) / |det dy/dx|.

    base_distribution: that of x. transforms: one transform, or a list of which the first comes
    first. validate_args: as in Distribution.

    >>> d = kiln.distributions
    >>> double = d.TransformedDistribution(d.Uniform(0., 1.), d.AffineTransform(0., 2.))
    >>> double.log_prob(kiln.tensor(1.)).exp(), double.cdf(kiln.tensor(1.))
    (tensor(0.5000), tensor(0.5000))
    """

    arg_constraints: Mapping[str, Constraint] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise errors.ValueError(
                f"{type(self).__name__}: transforms must be a Transform or a list of them; got"
                f" {transforms!r}"
            )
        check_distribution(type(self).__name__, "base_distribution", base_distribution)
        whole = ComposeTransform(self.transforms)
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        if len(batch) + len(event) < whole.domain.event_dim:
            raise errors.ValueError(
                f"{type(self).__name__}: base_distribution must have at least"
                f" {whole.domain.event_dim} dims in batch_shape and event_shape; got"
                f" {list(batch)} and {list(event)}"
            )
        # Parameters of transforms may make the batch larger; their events may take dims of it.
        shape = whole.forward_shape(batch + event)
        base_shape = whole.inverse_shape(shape)
        if base_shape != batch + event:
            base_distribution = base_distribution.expand(base_shape[: len(base_shape) - len(event)])
        taken = whole.domain.event_dim - len(event)
        if taken > 0:
            base_distribution = Independent(base_distribution, taken)
        self.base_dist = base_distribution
        added = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, len(self.base_dist.event_shape) + added)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        shape = kiln.Size(batch_shape) + self._event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Constraint:
        """The codomain of the last transform."""
        if not self.transforms:
            result: Constraint = self.base_dist.support
            return result
        result = self.transforms[-1].codomain
        missing = len(self._event_shape) - result.event_dim
        return constraints.independent(result, missing) if missing > 0 else result

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with kiln.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self._event_shape)
        total: Any = 0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            change = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(change, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        summed: Tensor = total + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))
        return summed

    @property
    def _sign(self) -> Any:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def _turned(self, probability: Tensor) -> Tensor:
        """Falling functions exchange the two sides."""
        sign = self._sign
        if isinstance(sign, int) and sign == 1:
            return probability
        turned: Tensor = sign * (probability - 0.5) + 0.5
        return turned

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._turned(value)))
