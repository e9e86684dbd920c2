"""The Dirichlet distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from . import constraints
from ._shapes import check_dims
from ._standard_gamma import log_standard_gamma
from .exp_family import ExponentialFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Vectors of K probabilities with sum 1; the density is proportional to prod_k x_k^(c_k - 1).

    concentration: c, [..., K], > 0. validate_args: as in Distribution.

    rsample has exact gradients.

    >>> kiln.distributions.Dirichlet(kiln.tensor([1., 3.])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        check_dims("Dirichlet", "concentration", concentration)
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, keepdim=True)
        # Without a concentration above 1 the density is largest in a corner.
        corner = F.one_hot(self.concentration.argmax(-1), self.concentration.shape[-1])
        flat = (self.concentration < 1).all(-1, keepdim=True)
        return kiln.where(flat, corner.to(mode.dtype), mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # Gamma draws divided by their sum. In logs, since all of them may be too small for floats.
        draws = log_standard_gamma(self.concentration.expand(shape)).softmax(-1)
        dtype = self.concentration.dtype
        return draws.to(dtype).clamp(min=kiln.finfo(dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        weights = kiln.xlogy(c - 1, value).sum(-1)
        return weights + c.sum(-1).lgamma() - c.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        c = self.concentration
        total, k = c.sum(-1), c.shape[-1]
        spread = c.lgamma().sum(-1) - total.lgamma()
        return spread - (k - total) * total.digamma() - ((c - 1) * c.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
