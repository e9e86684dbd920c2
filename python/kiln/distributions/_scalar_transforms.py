"""Transforms of single numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from . import constraints
from ._shapes import sum_rightmost
from ._transform import Transform
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor


class _Plain(Transform):
    """Transforms without parameters; all of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class _Growing(_Plain):
    bijective = True
    sign = 1


class ExpTransform(_Growing):
    """y = exp(x). cache_size: as in Transform.

    >>> kiln.distributions.transforms.ExpTransform()(kiln.tensor(0.))
    tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent for x > 0.

    exponent: a tensor or number other than 0. cache_size: as in Transform.

    >>> kiln.distributions.transforms.PowerTransform(2.)(kiln.tensor([1., 3.]))
    tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Tensor:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    def __hash__(self) -> int:
        return hash(type(self))

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        return kiln.Size(kiln.broadcast_shapes(shape, self.exponent.shape))

    inverse_shape = forward_shape


def _inner(y: Tensor) -> Tensor:
    """y, moved away from 0 and 1, so that both logs are finite."""
    limits = kiln.finfo(y.dtype)
    return y.clamp(min=limits.tiny, max=1 - limits.eps)


class SigmoidTransform(_Growing):
    """y = 1 / (1 + exp(-x)), inside of (0, 1). cache_size: as in Transform.

    >>> kiln.distributions.transforms.SigmoidTransform()(kiln.tensor(0.))
    tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _inner(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inner(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Growing):
    """y = log(1 + exp(x)). cache_size: as in Transform.

    >>> kiln.distributions.transforms.SoftplusTransform().inv(kiln.tensor(2.).log())
    tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-kiln.expm1(-y)).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Growing):
    """y = tanh(x). cache_size: as in Transform.

    To invert values near -1 and 1, use cache_size=1: there, tanh loses digits.

    >>> kiln.distributions.transforms.TanhTransform()(kiln.tensor(0.))
    tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - F.softplus(-2 * x))


class AbsTransform(_Plain):
    """y = |x|; of the two inverses it takes y. cache_size: as in Transform.

    >>> kiln.distributions.transforms.AbsTransform()(kiln.tensor([-1., 2.]))
    tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale x.

    loc: a tensor or number. scale: a tensor or number other than 0. event_dim: how many dims on the
    right are one event. cache_size: as in Transform.

    >>> kiln.distributions.transforms.AffineTransform(1., 2.)(kiln.tensor([0., 1.]))
    tensor([1., 3.])
    """

    bijective = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        event_dim: int = 0,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        """How many dims on the right are one event."""
        return self._event_dim

    @property
    def domain(self) -> Any:
        """All real numbers, or tensors."""
        if self._event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self._event_dim)

    @property
    def codomain(self) -> Any:
        """All real numbers, or tensors."""
        return self.domain

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, kiln.Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def __eq__(self, other: object) -> bool:
        def same(a: Any, b: Any) -> bool:
            return bool((kiln.as_tensor(a) == kiln.as_tensor(b)).all())

        return (
            isinstance(other, AffineTransform)
            and same(self.loc, other.loc)
            and same(self.scale, other.scale)
        )

    def __hash__(self) -> int:
        return hash(type(self))

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, kiln.Tensor):
            result = self.scale.abs().log()
        else:
            result = kiln.full_like(x, math.log(abs(self.scale)))
        shape = kiln.broadcast_shapes(x.shape, result.shape)
        return sum_rightmost(result.expand(shape), self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        shapes = [v.shape for v in (self.loc, self.scale) if isinstance(v, kiln.Tensor)]
        return kiln.Size(kiln.broadcast_shapes(shape, *shapes))

    inverse_shape = forward_shape
