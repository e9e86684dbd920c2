"""The base of all transforms."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

import kiln

from .. import errors
from ._shapes import check_dims
from .utils import inherit_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor


class Transform:
    """A differentiable function y = f(x) with its inverse and the log of its change of volume.

    cache_size: 1 keeps the last x and y, so that the inverse of the last y is the very x; 0 keeps
    nothing.

    A subclass defines _call(x), _inverse(y), log_abs_det_jacobian(x, y), the sets domain and
    codomain, whether it is bijective, and the sign of its slope if that is +1 or -1 everywhere.

    >>> double = kiln.distributions.transforms.AffineTransform(0., 2.)
    >>> x = kiln.tensor([1., 2.])
    >>> double(x), double.inv(double(x)), double.log_abs_det_jacobian(x, double(x)).exp()
    (tensor([2., 4.]), tensor([1., 2.]), tensor([2., 2.]))
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise errors.ValueError(
                f"{type(self).__name__}: cache_size must be 0 or 1; got {cache_size!r}"
            )
        self._cache_size = cache_size
        self._cached_x_y: tuple[Tensor | None, Tensor | None] = (None, None)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_words(cls)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached_x_y": (None, None)}

    @property
    def event_dim(self) -> int:
        """How many dims on the right the function takes together; the same for x and y."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise errors.ValueError(
                f"{type(self).__name__}: event_dim is {self.domain.event_dim} for x and"
                f" {self.codomain.event_dim} for y; ask domain or codomain"
            )
        return int(self.domain.event_dim)

    @property
    def inv(self) -> Transform:
        """The inverse, as a transform."""
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """+1 if the function grows everywhere, -1 if it falls; for functions of one number."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Self:
        """The same transform with a cache of that size; itself if it has it."""
        if self._cache_size == cache_size:
            return self
        new = copy.copy(self)
        Transform.__init__(new, cache_size=cache_size)
        return new

    def __call__(self, x: Tensor) -> Tensor:
        """y = f(x)."""
        check_dims(type(self).__name__, "x", x, _dims_of(self.domain))
        if self._cache_size == 0:
            return self._call(x)
        old, result = self._cached_x_y
        if x is old and result is not None:
            return result
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        check_dims(type(self).__name__, "y", y, _dims_of(self.codomain))
        if self._cache_size == 0:
            return self._inverse(y)
        result, old = self._cached_x_y
        if y is old and result is not None:
            return result
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise errors.NotImplementedError(f"{type(self).__name__} has no _call()")

    def _inverse(self, y: Tensor) -> Tensor:
        raise errors.NotImplementedError(f"{type(self).__name__} has no _inverse()")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| for y = f(x), without the dims of the event."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian()")

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        """The shape of y for an x of this shape."""
        return kiln.Size(shape)

    def inverse_shape(self, shape: Sequence[int]) -> kiln.Size:
        """The shape of x for a y of this shape."""
        return kiln.Size(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _dims_of(place: Any) -> int:
    """event_dim, or 0 if it depends on parameters."""
    try:
        return int(place.event_dim)
    except NotImplementedError:
        return 0


def check_transforms(owner: str, transforms: Sequence[object]) -> None:
    """Raises unless all of them are transforms."""
    for transform in transforms:
        if not isinstance(transform, Transform):
            raise errors.TypeError(
                f"{owner}: expected transforms; got a {type(transform).__name__}"
            )


class _InverseTransform(Transform):
    """The inverse of a transform, which does the work."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @property
    def domain(self) -> Any:
        """The codomain of the other."""
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        """The domain of the other."""
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        """Whether the other is."""
        return bool(self._inv.bijective)

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __hash__(self) -> int:
        return hash(self._inv) + 1

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> kiln.Size:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"Inverse({self._inv!r})"
