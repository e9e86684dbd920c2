"""Draws of gamma distributions with rate 1, and how they and P(a, x) change with the concentration.

The draws are those of Marsaglia and Tsang (2000). Their derivative is implicit (Figurnov, Mohamed
and Mnih, 2018): a draw keeps its probability P(a, x), so dx/da = -(dP/da) / (dP/dx).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import kiln
from kiln.autograd.function import once_differentiable

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

# Where the integrands below are cut off: e^-CUT is less than the rounding of float64.
_CUT = 40.0
# Below, a power series converges in few terms; above, integrands are smooth.
_SMALL = 2.0
_TERMS = 40


@functools.cache
def _nodes() -> tuple[tuple[float, float], ...]:
    """(place, weight) of the Gauss-Legendre rule on [0, 1], by Newton's method on P_n."""
    n, pairs = 48, []
    for i in range(n):
        x = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        slope = 1.0
        for _ in range(8):
            before, now = 1.0, x
            for k in range(2, n + 1):
                before, now = now, ((2 * k - 1) * x * now - (k - 1) * before) / k
            slope = n * (x * now - before) / (x * x - 1)
            x -= now / slope
        pairs.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return tuple(pairs)


def _small(a: Tensor, x: Tensor, log_x: Tensor) -> Tensor:
    """For x <= 2, by the series P(a, x) = x^a e^-x / G(a + 1) sum_n x^n / ((a + 1) .. (a + n))."""
    term, harmonic = kiln.ones_like(a), kiln.zeros_like(a)
    total, slope = term.clone(), harmonic.clone()
    for n in range(1, _TERMS):
        term = term * x / (a + n)
        harmonic = harmonic + 1 / (a + n)
        total = total + term
        slope = slope - term * harmonic
    return -((log_x - (a + 1).digamma()) * total + slope) / a


def _large(a: Tensor, x: Tensor, log_x: Tensor) -> Tensor:
    """For x > 2, by the integral of dp/da over one side of x.

    With t = x e^(+-s) the integrand falls from 1 as exp(-phi(s)), where phi is convex. Left of a
    the side from 0 to x is taken, right of it the other one, whose integral is the negative.
    """
    right = x > a
    sign = kiln.where(right, 1.0, -1.0).to(a.dtype)
    gap = (x - a).abs()

    def phi(s: Tensor) -> Tensor:
        # x e^s - a s without the parts that cancel.
        return gap * s + x * (kiln.expm1(sign * s) - sign * s)

    # The end: phi(end) = CUT. Newton's method comes from the right, since phi is convex.
    end = kiln.minimum(_CUT / gap, (2 * _CUT / x).sqrt() + kiln.where(right, 0.0, _CUT / a))
    for _ in range(6):
        slope = gap + x * sign * kiln.expm1(sign * end)
        end = (end - (phi(end) - _CUT) / slope).abs()
    level = log_x - a.digamma()
    total = kiln.zeros_like(a)
    for place, weight in _nodes():
        s = end * place
        total = total + weight * (-phi(s)).exp() * (level + sign * s)
    return sign * total * end


def _relative_slope(a: Tensor, log_x: Tensor) -> Tensor:
    """(dx/da) / x at constant P(a, x): -(dP/da) / (x p(x; a)), for float64 tensors."""
    x = log_x.exp()
    small = x <= _SMALL
    # Each formula gets harmless numbers where the other one holds.
    low = kiln.where(small, x, 1.0)
    low_log = kiln.where(small, log_x, 0.0)
    result = _small(kiln.where(small, a, 1.0), low, low_log)
    if bool(small.all()):
        return result
    high = kiln.where(small, 4.0, x)
    high_log = kiln.where(small, math.log(4.0), log_x)
    return kiln.where(small, result, _large(kiln.where(small, 4.0, a), high, high_log))


def _draw_logs(a: Tensor) -> Tensor:
    """Logs of standard gamma draws for a flat float64 tensor of concentrations.

    Concentrations below 1 are raised by 1, and the draw is multiplied by u^(1 / a); in logs this
    cannot underflow.
    """
    raised = a < 1
    d = kiln.where(raised, a + 1, a) - 1 / 3
    result = a.log()  # of what is no concentration (0, inf, NaN): the limit
    todo = kiln.isfinite(a).logical_and(a > 0).nonzero().squeeze(-1)
    while todo.numel() > 0:
        d_now = d[todo]
        normal = kiln.randn(d_now.shape, dtype=a.dtype, device=a.device)
        uniform = 1 - kiln.rand(d_now.shape, dtype=a.dtype, device=a.device)
        cube = (1 + normal / (9 * d_now).sqrt()) ** 3
        log_cube = cube.clamp(min=1e-300).log()
        bound = 0.5 * normal * normal + d_now * (1 - cube + log_cube)
        accepted = (cube > 0) & (uniform.log() < bound)
        result = result.index_put((todo[accepted],), (d_now.log() + log_cube)[accepted])
        todo = todo[~accepted]
    if bool(raised.any()):
        uniform = 1 - kiln.rand(a.shape, dtype=a.dtype, device=a.device)
        result = kiln.where(raised & (a > 0), result + uniform.log() / a, result)
    return result


class _LogStandardGamma(kiln.autograd.Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        logs = _draw_logs(concentration.reshape(-1)).reshape(concentration.shape)
        ctx.save_for_backward(concentration, logs)
        return logs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        concentration, logs = ctx.saved_tensors
        return gradient * _relative_slope(concentration, logs)


def log_standard_gamma(concentration: Tensor) -> Tensor:
    """Logs of draws from gamma distributions of rate 1, in float64, with a derivative."""
    logs: Tensor = _LogStandardGamma.apply(concentration.double())
    return logs


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draws from gamma distributions of rate 1, in the dtype of concentration."""
    draws = log_standard_gamma(concentration).exp().to(concentration.dtype)
    return draws.clamp(min=kiln.finfo(draws.dtype).tiny)


class _GammaInc(kiln.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        return kiln.special.gammainc(a, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        a, x = ctx.saved_tensors
        wide, log_x = a.double(), x.double().log()
        mass = (wide * log_x - x.double() - wide.lgamma()).exp()  # x p(x; a)
        by_a = kiln.where(x > 0, -_relative_slope(wide, log_x) * mass, 0.0)
        by_x = kiln.where(x > 0, mass / x.double(), 0.0)
        return gradient * by_a.to(a.dtype), gradient * by_x.to(x.dtype)


def gammainc(a: Tensor, x: Tensor) -> Tensor:
    """P(a, x), the regularized lower incomplete gamma function, with both derivatives."""
    result: Tensor = _GammaInc.apply(*kiln.broadcast_tensors(a, x))
    return result
