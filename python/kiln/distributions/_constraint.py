"""What constraints are, and those that are made of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor


class Constraint:
    """A set of values, and a test whether values are in it.

    A subclass defines check(value). is_discrete: whether the set is countable. event_dim: how many
    dims on the right together make one value.

    >>> kiln.distributions.constraints.positive.check(kiln.tensor([-1., 2.]))
    tensor([False, True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event of value is in the set: a bool tensor without the event's dims."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no check()")

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """The place of a set that depends on other parameters, such as the support of Uniform.

    It cannot be checked. is_discrete, event_dim: what is known of the set nevertheless; to ask for
    what was not given is an error.

    >>> kiln.distributions.constraints.dependent(is_discrete=True, event_dim=0).is_discrete
    True
    """

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether the set is countable."""
        if self._is_discrete is None:
            raise errors.NotImplementedError("dependent: is_discrete depends on the parameters")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """How many dims on the right together make one value."""
        if self._event_dim is None:
            raise errors.NotImplementedError("dependent: event_dim depends on the parameters")
        return self._event_dim

    def __call__(
        self, *, is_discrete: bool | None = None, event_dim: int | None = None
    ) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is None else is_discrete,
            event_dim=self._event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise errors.ValueError("dependent: a set that depends on parameters cannot be checked")


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint, and itself a constraint when a class is asked.

    fn: the function that computes it from the object. is_discrete, event_dim: what the class
    knows.

    >>> kiln.distributions.constraints.is_dependent(kiln.distributions.Uniform.support)
    True
    >>> kiln.distributions.Uniform(0., 2.).support
    Interval(lower_bound=0.0, upper_bound=2.0)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: bool | None = None,
        event_dim: int | None = None,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """Tensors of more dims, with all elements in a set.

    base_constraint: the set. reinterpreted_batch_ndims: how many more dims.

    >>> positive = kiln.distributions.constraints.positive
    >>> kiln.distributions.constraints.independent(positive, 1).check(kiln.tensor([-1., 2.]))
    tensor(False)
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_constraint, Constraint):
            raise errors.TypeError(
                "independent: base_constraint must be a Constraint; got"
                f" {type(base_constraint).__name__}"
            )
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise errors.ValueError(
                "independent: reinterpreted_batch_ndims must be an int >= 0; got"
                f" {reinterpreted_batch_ndims!r}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        """Whether the set is countable."""
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:
        """How many dims on the right together make one value."""
        return int(self.base_constraint.event_dim) + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise errors.ValueError(
                f"independent: expected at least {self.event_dim} dims; got {value.dim()}"
            )
        kept = result.dim() - self.reinterpreted_batch_ndims
        return result.reshape((*result.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The set of the values that all components of a mixture can have.

    base_constraint: the support of the component distribution, which has one more batch dim.

    >>> positive = kiln.distributions.constraints.positive
    >>> mixture = kiln.distributions.constraints.MixtureSameFamilyConstraint(positive)
    >>> mixture.check(kiln.tensor([-1., 2.]))
    tensor([False, True])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise errors.TypeError(
                "MixtureSameFamilyConstraint: base_constraint must be a Constraint; got"
                f" {type(base_constraint).__name__}"
            )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        """Whether the set is countable."""
        return bool(self.base_constraint.is_discrete)

    @property
    def event_dim(self) -> int:
        """How many dims on the right together make one value."""
        return int(self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        # Values get the dim of the components, which is left of the event.
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"
