"""Transforms from real numbers to the sets of constraints.

    scale = transform_to(constraints.positive)(parameter)

An optimizer then changes a parameter without bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .. import errors
from . import constraints, transforms

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, overload

    from .constraints import Constraint
    from .transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

F = TypeVar("F", bound="Callable[[Any], Transform]")


class ConstraintRegistry:
    """Knows a transform for each class of constraints; a call with a constraint gives it.

    >>> positive = kiln.distributions.constraints.positive
    >>> kiln.distributions.transform_to(positive)(kiln.tensor(0.))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Callable[[Any], Transform]] = {}

    if TYPE_CHECKING:

        @overload
        def register(self, constraint: Any, factory: F) -> F: ...
        @overload
        def register(self, constraint: Any) -> Callable[[F], F]: ...

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Adds a class of constraints (or that of a constraint).

        factory: makes the transform of a constraint. Without it, this is a decorator of such a
        function.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise errors.TypeError(
                f"register: expected a Constraint or a class of them; got {constraint!r}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform whose codomain is the set of constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise errors.NotImplementedError(f"there is no transform to {constraint!r}")
        return factory(constraint)


biject_to = ConstraintRegistry()
biject_to.__doc__ = """A bijective transform from real numbers to the set of a constraint.

constraint: the set. Sets of more dims than free numbers, such as positive_definite, have none.

>>> to_simplex = kiln.distributions.biject_to(kiln.distributions.constraints.simplex)
>>> to_simplex(kiln.zeros(1)), to_simplex.bijective
(tensor([0.5000, 0.5000]), True)
"""
transform_to = ConstraintRegistry()
transform_to.__doc__ = """A transform from real numbers to the set of a constraint, for parameters.

constraint: the set. The transform need not be bijective: an optimizer fares better without.

>>> to_simplex = kiln.distributions.transform_to(kiln.distributions.constraints.simplex)
>>> to_simplex(kiln.zeros(2)), to_simplex.bijective
(tensor([0.5000, 0.5000]), False)
"""


def _both(*kinds: Any) -> Callable[[Callable[[Any], Transform]], Callable[[Any], Transform]]:
    def register(factory: Callable[[Any], Transform]) -> Callable[[Any], Transform]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _to_real(constraint: Any) -> Transform:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _bijection_of_events(constraint: Any) -> Transform:
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _transform_of_events(constraint: Any) -> Transform:
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_both(constraints.positive, constraints.nonnegative)
def _to_positive(constraint: Any) -> Transform:
    if not _is(constraint.lower_bound, 0):
        return _to_above(constraint)
    return transforms.ExpTransform()


def _is(bound: Any, number: float) -> bool:
    return isinstance(bound, int | float) and bound == number


def _to_above(constraint: Any) -> Transform:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _to_below(constraint: Any) -> Transform:
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if _is(low, 0) and _is(high, 1):
        return transforms.SigmoidTransform()
    stretch = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), stretch])


@biject_to.register(constraints.simplex)
def _bijection_to_simplex(constraint: Any) -> Transform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Transform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> Transform:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> Transform:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Transform:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def _bijection_to_cat(constraint: Any) -> Transform:
    parts = [biject_to(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@transform_to.register(constraints.cat)
def _transform_to_cat(constraint: Any) -> Transform:
    parts = [transform_to(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@biject_to.register(constraints.stack)
def _bijection_to_stack(constraint: Any) -> Transform:
    return transforms.StackTransform([biject_to(c) for c in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def _transform_to_stack(constraint: Any) -> Transform:
    return transforms.StackTransform([transform_to(c) for c in constraint.cseq], constraint.dim)
