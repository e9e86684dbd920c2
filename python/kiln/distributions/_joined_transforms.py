"""Transforms of parts of a tensor, and the transform of a distribution's probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from .. import errors
from . import constraints
from ._shapes import sum_rightmost
from ._transform import Transform, check_transforms

from .distribution import check_distribution

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from .distribution import Distribution


class _Joined(Transform):
    """What CatTransform and StackTransform share."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size=cache_size)
        check_transforms(type(self).__name__, tseq)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Any:
        new = super().with_cache(cache_size)
        if new is not self:
            new.transforms = [t.with_cache(cache_size) for t in self.transforms]
        return new

    @property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(t.bijective for t in self.transforms)

    def _parts(self, value: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        parts = self._parts(x)
        return self._join([t(p) for t, p in zip(self.transforms, parts, strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        parts = self._parts(y)
        return self._join([t._inv_call(p) for t, p in zip(self.transforms, parts, strict=True)])


class CatTransform(_Joined):
    """A transform for each part of a tensor along a dim.

    tseq: the transforms. dim: along which the parts lie. lengths: the sizes of the parts; all 1
    unless given. cache_size: as in Transform.

    >>> t = kiln.distributions.transforms
    >>> cat = t.CatTransform([t.ExpTransform(), t.AffineTransform(0., 3.)], lengths=[1, 2])
    >>> cat(kiln.tensor([0., 1., 2.]))
    tensor([1., 3., 6.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise errors.ValueError(
                f"CatTransform: expected {len(self.transforms)} lengths; got {len(self.lengths)}"
            )

    @property
    def event_dim(self) -> int:
        """The largest of the parts."""
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The size of the dim."""
        return sum(self.lengths)

    @property
    def domain(self) -> Any:
        """The domains of the parts, joined."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        """The codomains of the parts, joined."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _parts(self, value: Tensor) -> list[Tensor]:
        if value.size(self.dim) != self.length:
            raise errors.ValueError(
                f"CatTransform: dim {self.dim} must have {self.length} elements; got"
                f" {value.size(self.dim)}"
            )
        return list(value.split(self.lengths, self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return kiln.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            term = t.log_abs_det_jacobian(a, b)
            terms.append(sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        # A dim of the event is summed over, one of the batch is kept.
        if dim < 0:
            return kiln.cat(terms, dim)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total


class StackTransform(_Joined):
    """A transform for each slice of a tensor along a dim.

    tseq: the transforms. dim: along which the slices lie. cache_size: as in Transform.

    >>> t = kiln.distributions.transforms
    >>> stack = t.StackTransform([t.ExpTransform(), t.AffineTransform(0., 3.)], dim=1)
    >>> stack(kiln.tensor([[0., 1.], [0., 2.]]))
    tensor([[1., 3.],
            [1., 6.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    @property
    def domain(self) -> Any:
        """The domains of the slices, stacked."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        """The codomains of the slices, stacked."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _parts(self, value: Tensor) -> list[Tensor]:
        if value.size(self.dim) != len(self.transforms):
            raise errors.ValueError(
                f"StackTransform: dim {self.dim} must have {len(self.transforms)} elements; got"
                f" {value.size(self.dim)}"
            )
        return list(value.unbind(self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return kiln.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return kiln.stack([t.log_abs_det_jacobian(a, b) for t, a, b in triples], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = F(x), with the cdf F of a distribution of numbers; the inverse takes quantiles.

    distribution: it has cdf, icdf and log_prob. cache_size: as in Transform.

    >>> uniform = kiln.distributions.Uniform(0., 4.)
    >>> kiln.distributions.transforms.CumulativeDistributionTransform(uniform)(kiln.tensor(1.))
    tensor(0.2500)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        check_distribution("CumulativeDistributionTransform", "distribution", distribution)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
