"""Initializer: a way to fill a parameter, as a value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._C import Param
from ..autograd.grad_mode import no_grad
from . import init as _init

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from .._C import Tensor, dtype
    from .._typing import DeviceLike

__all__ = ["Initializer"]


class Initializer:
    """One of Burn's initializers. It is made by the functions named after its kind; called, it fills
    a tensor in place; init() makes a parameter that is filled when it is first read.

        weight = Initializer.KaimingUniform(gain=1 / 3**0.5).init((3, 4))
        model.apply(lambda m: isinstance(m, nn.Linear) and Initializer.XavierNormal()(m.weight))

    >>> nn.Initializer.Constant(7.)(kiln.empty(2))
    tensor([7., 7.])
    """

    def __init__(self, kind: str, fill: Callable[[Tensor, Any], object], **options: Any) -> None:
        self._kind, self._fill, self._options, self._fans = kind, fill, options, None

    @classmethod
    def Constant(cls, value: float) -> Self:
        """All elements are value."""
        return cls("Constant", lambda x, _: _init.constant_(x, value), value=value)

    @classmethod
    def Ones(cls) -> Self:
        """All elements are 1."""
        return cls("Ones", lambda x, _: _init.ones_(x))

    @classmethod
    def Zeros(cls) -> Self:
        """All elements are 0."""
        return cls("Zeros", lambda x, _: _init.zeros_(x))

    @classmethod
    def Uniform(cls, min: float, max: float) -> Self:
        """Uniform in [min, max)."""
        if not min <= max:
            raise ValueError(f"Initializer.Uniform: min must not be above max; got {min} and {max}")
        return cls("Uniform", lambda x, _: _init.uniform_(x, min, max), min=min, max=max)

    @classmethod
    def Normal(cls, mean: float, std: float) -> Self:
        """Normal with this mean and deviation."""
        if not std >= 0:
            raise ValueError(f"Initializer.Normal: std must not be negative; got {std}")
        return cls("Normal", lambda x, _: _init.normal_(x, mean, std), mean=mean, std=std)

    @classmethod
    def KaimingUniform(cls, gain: float = 1.0, fan_out_only: bool = False) -> Self:
        """Uniform within gain sqrt(3 / fan); fan_in, or fan_out."""

        def fill(x, fans):
            bound = gain * _root(3, fans[1 if fan_out_only else 0])
            return _init.uniform_(x, -bound, bound)

        return cls("KaimingUniform", fill, gain=gain, fan_out_only=fan_out_only)

    @classmethod
    def KaimingNormal(cls, gain: float = 1.0, fan_out_only: bool = False) -> Self:
        """Normal of deviation gain / sqrt(fan); fan_in, or fan_out."""

        def fill(x, fans):
            return _init.normal_(x, 0.0, gain * _root(1, fans[1 if fan_out_only else 0]))

        return cls("KaimingNormal", fill, gain=gain, fan_out_only=fan_out_only)

    @classmethod
    def XavierUniform(cls, gain: float = 1.0) -> Self:
        """Uniform within gain sqrt(6 / (fan_in + fan_out))."""

        def fill(x, fans):
            bound = gain * _root(6, sum(fans))
            return _init.uniform_(x, -bound, bound)

        return cls("XavierUniform", fill, gain=gain)

    @classmethod
    def XavierNormal(cls, gain: float = 1.0) -> Self:
        """Normal of deviation gain sqrt(2 / (fan_in + fan_out))."""
        return cls("XavierNormal", lambda x, fans: _init.normal_(x, 0.0, gain * _root(2, sum(fans))), gain=gain)

    @classmethod
    def Orthogonal(cls, gain: float = 1.0) -> Self:
        """Orthonormal rows or columns, times gain."""
        return cls("Orthogonal", lambda x, _: _init.orthogonal_(x, gain), gain=gain)

    def __call__(self, tensor: Tensor) -> Tensor:
        """Fills the tensor and gives it back. ValueError where fans need two dims and it has fewer."""
        needs_fans = self._kind.startswith(("Kaiming", "Xavier"))
        fans = self._fans or (_fans(self, tensor.shape) if needs_fans else None)
        with no_grad():
            self._fill(tensor, fans)
        return tensor

    def init(
        self, shape: Sequence[int], *, device: DeviceLike | None = None, dtype: dtype | None = None
    ) -> Any:
        """A parameter of this shape, whose value is made when somebody first reads it."""
        import kiln

        dtype = dtype or kiln.get_default_dtype()
        shape = tuple(shape)
        if self._kind.startswith(("Kaiming", "Xavier")) and self._fans is None:
            _fans(self, shape)

        def make(device, require_grad):
            return self(kiln.empty(shape, dtype=dtype, device=device)).requires_grad_(require_grad)

        return Param.uninitialized(
            kiln.nn.ParamId(), make, kiln.device(device or "cpu"), True, shape=shape, dtype=dtype
        )

    def init_with(self, shape: Sequence[int], fan_in: int, fan_out: int, **options: Any) -> Param:
        """init() with fans of one's own, for biases and other shapes."""
        if fan_in < 0 or fan_out < 0:
            raise ValueError(f"Initializer.init_with: fans must not be negative; got {fan_in} and {fan_out}")
        of_fans = Initializer(self._kind, self._fill, **self._options)
        of_fans._fans = (fan_in, fan_out)  # type: ignore[assignment]
        return of_fans.init(shape, **options)

    def __repr__(self) -> str:
        return f"{self._kind}({', '.join(f'{k}={v}' for k, v in self._options.items())})"


def _root(parts, fan):
    return math.sqrt(parts / fan) if fan else 0.0


def _fans(initializer, shape):
    if len(shape) < 2:
        raise ValueError(f"{initializer}: fans need at least 2 dims; got shape {tuple(shape)}; init_with() takes fans")
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive
