"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around loc: exp(concentration cos(x - loc)) / (2 pi I0(concentration)).

    loc: an angle in radians. concentration: > 0; the larger, the narrower. validate_args: as in
    Distribution.

    Draws are from -pi to pi (Best and Fisher, 1979). The variance is the circular one, 1 - I1 / I0.

    >>> kiln.distributions.VonMises(kiln.tensor(1.), kiln.tensor(4.)).mean
    tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(
        self,
        loc: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        k = self.concentration
        return 1 - kiln.special.i1e(k) / kiln.special.i0e(k)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # I0 grows like e^k; i0e is without that factor.
        cosine = k * ((value - self.loc).cos() - 1)
        return cosine - math.log(2 * math.pi) - kiln.special.i0e(k).log()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with kiln.no_grad():
            # In float32 the angles of narrow distributions would be coarse.
            k = self.concentration.double().expand(shape).reshape(-1)
            angles = self._draw(k).reshape(shape) + self.loc.double()
            wrapped = (angles + math.pi) % (2 * math.pi) - math.pi
            return wrapped.to(self.loc.dtype)

    @staticmethod
    def _draw(k: Tensor) -> Tensor:
        """Angles around 0: a wrapped Cauchy distribution, with rejection."""
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # For small concentrations the difference above has no digits.
        r = kiln.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
        result = kiln.zeros_like(k)
        todo = kiln.isfinite(r).logical_and(k > 0).nonzero().squeeze(-1)
        while todo.numel() > 0:
            r_now, k_now = r[todo], k[todo]
            u = kiln.rand((3, *r_now.shape), dtype=k.dtype, device=k.device)
            z = (math.pi * u[0]).cos()
            f = (1 + r_now * z) / (r_now + z)
            c = k_now * (r_now - f)
            accepted = (c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 - c >= 0)
            angles = (u[2] - 0.5).sign() * f.clamp(-1, 1).acos()
            result = result.index_put((todo[accepted],), angles[accepted])
            todo = todo[~accepted]
        return result
