"""Sets of values: what the parameters of a distribution may be, and what its samples are.

    constraints.positive.check(kiln.tensor([-1.0, 2.0]))  # tensor([False, True])

Names in small letters are sets (positive, simplex) or classes of sets (interval, greater_than).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._constraint import (
    Constraint,
    MixtureSameFamilyConstraint,
    _Dependent,
    _DependentProperty,
    _IndependentConstraint,
)
from ._joint_constraints import (
    _Cat,
    _CorrCholesky,
    _LowerCholesky,
    _LowerTriangular,
    _Multinomial,
    _OneHot,
    _PositiveDefinite,
    _PositiveSemidefinite,
    _Simplex,
    _Square,
    _Stack,
    _Symmetric,
)
from ._scalar_constraints import (
    _Boolean,
    _GreaterThan,
    _GreaterThanEq,
    _HalfOpenInterval,
    _IntegerGreaterThan,
    _IntegerInterval,
    _Interval,
    _LessThan,
    _Real,
)

if TYPE_CHECKING:
    from typing import TypeGuard

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


def is_dependent(constraint: object) -> TypeGuard[_Dependent]:
    """Whether a constraint stands for a set that depends on other parameters.

    >>> constraints = kiln.distributions.constraints
    >>> constraints.is_dependent(constraints.dependent), constraints.is_dependent(constraints.real)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint

real = _Real()
real_vector = independent(real, 1)
boolean = _Boolean()
nonnegative = _GreaterThanEq(0.0)
positive = _GreaterThan(0.0)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
unit_interval = _Interval(0.0, 1.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval

simplex = _Simplex()
one_hot = _OneHot()
multinomial = _Multinomial
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
