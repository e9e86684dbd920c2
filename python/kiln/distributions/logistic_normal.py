"""The logistic-normal distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import constraints
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

if TYPE_CHECKING:
    from .._C import Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Vectors of K probabilities: normal vectors of K - 1 elements through StickBreakingTransform.

    loc: the means of the normal numbers, [..., K - 1]. scale: their standard deviations, > 0.
    validate_args: as in Distribution.

    >>> normal = kiln.distributions.LogisticNormal(kiln.zeros(2), kiln.ones(2))
    >>> normal.event_shape, normal.sample().sum()
    (kiln.Size([3]), tensor(1.))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=False)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def _normal(self) -> Normal:
        base = self.base_dist.base_dist
        assert isinstance(base, Normal)
        return base

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self._normal.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal numbers."""
        return self._normal.scale
