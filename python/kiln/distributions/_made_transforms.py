"""Transforms that are made of others, and those that only change shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from .. import errors
from . import constraints
from ._shapes import sum_rightmost
from ._transform import Transform, check_transforms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from .constraints import Constraint


def with_event_dim(constraint: Constraint, event_dim: int) -> Constraint:
    """The set of tensors of so many dims whose elements are in the set."""
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


class ComposeTransform(Transform):
    """Transforms one after another; the first of parts comes first.

    parts: transforms. cache_size: as in Transform, for all parts.

    >>> t = kiln.distributions.transforms
    >>> both = t.ComposeTransform([t.AffineTransform(1., 2.), t.AbsTransform()])
    >>> both(kiln.tensor([-3., 1.]))
    tensor([5., 3.])
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        check_transforms("ComposeTransform", parts)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(tuple(self.parts))

    @property
    def domain(self) -> Any:
        """The domain of the first part, with as many dims as later ones need."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return with_event_dim(self.parts[0].domain, event_dim)

    @property
    def codomain(self) -> Any:
        """The codomain of the last part, with as many dims as earlier ones need."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return with_event_dim(self.parts[-1].codomain, event_dim)

    @property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> ComposeTransform:
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def with_cache(self, cache_size: int = 1) -> ComposeTransform:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform([p.with_cache(cache_size) for p in self.parts], cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return kiln.zeros_like(x)
        between = [x]
        for part in self.parts[:-1]:
            between.append(part(between[-1]))
        between.append(y)
        total: Any = 0
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, between[:-1], between[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(term, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return kiln.Size(shape)

    def inverse_shape(self, shape: Sequence[int]) -> kiln.Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return kiln.Size(shape)

    def __repr__(self) -> str:
        return "ComposeTransform([" + ", ".join(map(repr, self.parts)) + "])"


class IndependentTransform(Transform):
    """A transform that takes more dims on the right as one event: the log changes are summed.

    base_transform: the transform. reinterpreted_batch_ndims: how many more dims. cache_size: as in
    Transform.

    >>> t = kiln.distributions.transforms
    >>> exp = t.IndependentTransform(t.ExpTransform(), 1)
    >>> x = kiln.tensor([1., 2.])
    >>> exp.log_abs_det_jacobian(x, exp(x))
    tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        check_transforms("IndependentTransform", [base_transform])
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> IndependentTransform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size
        )

    @property
    def domain(self) -> Any:
        """The domain of the base, with more dims."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        """The codomain of the base, with more dims."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        """Whether the base is."""
        return bool(self.base_transform.bijective)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, IndependentTransform)
            and self.base_transform == other.base_transform
            and self.reinterpreted_batch_ndims == other.reinterpreted_batch_ndims
        )

    def __hash__(self) -> int:
        return hash((self.base_transform, self.reinterpreted_batch_ndims))

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(result, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> kiln.Size:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Gives the dims on the right another shape.

    in_shape: the shape of the event of x. out_shape: that of y, with as many elements. cache_size:
    as in Transform.

    >>> flat = kiln.distributions.transforms.ReshapeTransform((2, 2), (4,))
    >>> flat(kiln.zeros(3, 2, 2)).shape
    kiln.Size([3, 4])
    """

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        self.in_shape = kiln.Size(in_shape)
        self.out_shape = kiln.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise errors.ValueError(
                "ReshapeTransform: in_shape and out_shape must have as many elements; got"
                f" {list(self.in_shape)} and {list(self.out_shape)}"
            )
        super().__init__(cache_size=cache_size)

    @property
    def domain(self) -> Any:
        """All tensors with the dims of in_shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        """All tensors with the dims of out_shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        return self._replaced(kiln.Size(shape), self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> kiln.Size:
        return self._replaced(kiln.Size(shape), self.out_shape, self.in_shape)

    def _replaced(self, shape: kiln.Size, old: kiln.Size, new: kiln.Size) -> kiln.Size:
        start = len(shape) - len(old)
        if start < 0 or shape[start:] != old:
            raise errors.ValueError(
                f"ReshapeTransform: the last dims must be {list(old)}; got shape {list(shape)}"
            )
        return shape[:start] + new
