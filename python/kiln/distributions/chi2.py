"""The chi-squared distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import constraints
from .gamma import Gamma
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of df standard normal numbers: Gamma(df / 2, 1 / 2).

    df: the degrees of freedom, > 0. validate_args: as in Distribution.

    >>> kiln.distributions.Chi2(3.).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(0.5 * self.df, 0.5, validate_args=validate_args)

    @property
    def _expanded_parameters(self) -> Mapping[str, Constraint]:
        return {**Gamma.arg_constraints, **self.arg_constraints}
