"""Sets of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._constraint import Constraint

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


def _shown(**bounds: Any) -> str:
    """The bounds as arguments; a tensor of one element as its number."""

    def text(bound: Any) -> str:
        return repr(bound.item() if hasattr(bound, "item") and bound.numel() == 1 else bound)

    return "(" + ", ".join(f"{name}={text(bound)}" for name, bound in bounds.items()) + ")"


class _Real(Constraint):
    """All real numbers: everything but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Above(Constraint):
    """What sets with a lower bound share."""

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + _shown(lower_bound=self.lower_bound)


class _Between(Constraint):
    """What sets with two bounds share."""

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def __repr__(self) -> str:
        bounds = _shown(lower_bound=self.lower_bound, upper_bound=self.upper_bound)
        return type(self).__name__.removeprefix("_") + bounds


class _GreaterThan(_Above):
    """x > lower_bound.

    >>> kiln.distributions.constraints.greater_than(1.).check(kiln.tensor([1., 2.]))
    tensor([False, True])
    """

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    """x >= lower_bound.

    >>> kiln.distributions.constraints.greater_than_eq(1.).check(kiln.tensor([0., 1.]))
    tensor([False, True])
    """

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _IntegerGreaterThan(_Above):
    """Whole numbers >= lower_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _LessThan(Constraint):
    """x < upper_bound.

    >>> kiln.distributions.constraints.less_than(1.).check(kiln.tensor([0., 1.]))
    tensor([ True, False])
    """

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound

    def __repr__(self) -> str:
        return "LessThan" + _shown(upper_bound=self.upper_bound)


class _Interval(_Between):
    """lower_bound <= x <= upper_bound.

    >>> kiln.distributions.constraints.interval(0., 1.).check(kiln.tensor([0., 1., 2.]))
    tensor([ True,  True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """lower_bound <= x < upper_bound.

    >>> kiln.distributions.constraints.half_open_interval(0., 1.).check(kiln.tensor([0., 1.]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """The whole numbers from lower_bound to upper_bound, both included.

    >>> kiln.distributions.constraints.integer_interval(0, 2).check(kiln.tensor([1., 1.5, 3.]))
    tensor([ True, False, False])
    """

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)
