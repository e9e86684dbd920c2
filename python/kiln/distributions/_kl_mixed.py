"""Divergences of two distributions of different kinds.

All are -(entropy of p) - (mean of log q(x) for draws x of p).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import kiln

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor
    from .distribution import Distribution


def _register(kinds: Sequence[type[Distribution]], kind: type[Distribution], formula: Any) -> None:
    for each in kinds:
        register_kl(each, kind)(formula)


# ---- Draws of p that q cannot have


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    shape = kiln.broadcast_shapes(p.batch_shape, q.batch_shape)
    like = p.mean
    return kiln.full(shape, kiln.inf, dtype=like.dtype, device=like.device)


_BOUNDED: list[type[Distribution]] = [Beta, ContinuousBernoulli, Pareto, Uniform]
_REAL: list[type[Distribution]] = [Gumbel, Laplace, Normal]

_register([Beta, ContinuousBernoulli], Pareto, _infinite)
_register([Poisson], Bernoulli, _infinite)
_register([Poisson], Binomial, _infinite)
for _kind in _BOUNDED:
    _register([Exponential, Gamma, *_REAL], _kind, _infinite)
    if _kind is not Pareto:
        _register([Pareto], _kind, _infinite)
_register(_REAL, Exponential, _infinite)
_register(_REAL, Gamma, _infinite)


def _outside(p: Uniform, low: Tensor | float, result: Tensor, high: Any = kiln.inf) -> Tensor:
    """The result; infinite where draws of p are below low or above high."""
    return kiln.where((p.low < low) | (p.high > high), kiln.inf, result)


# ---- Means of x, log x and exp(-x / scale)


def _mean_log(p: Any) -> Tensor:
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - euler_constant
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    low, high = p.low.clamp(min=0), p.high.clamp(min=0)
    result: Tensor = (kiln.xlogy(high, high) - kiln.xlogy(low, low)) / (p.high - p.low) - 1
    return result


def _mean_fall(p: Any, scale: Tensor) -> Tensor:
    """The mean of exp(-x / scale)."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + 1 / scale)
    if isinstance(p, Gamma):
        return (-p.concentration * (1 / (scale * p.rate)).log1p()).exp()
    if isinstance(p, Normal):
        return (-p.loc / scale + 0.5 * (p.scale / scale) ** 2).exp()
    width = p.high - p.low
    result: Tensor = -(-p.low / scale).exp() * kiln.expm1(-width / scale) * scale / width
    return result


# ---- By q


def _to_normal(p: Any, q: Normal) -> Tensor:
    distance = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    result: Tensor = distance + q.scale.log() + 0.5 * math.log(2 * math.pi) - p.entropy()
    return result


def _pareto_to_normal(p: Pareto, q: Normal) -> Tensor:
    # Without a variance the divergence is infinite, and the formula has no slope.
    finite = Pareto(p.scale, kiln.where(p.alpha > 2, p.alpha, 3.0), validate_args=False)
    return kiln.where(p.alpha > 2, _to_normal(finite, q), kiln.inf)


def _pareto_to(formula: Any) -> Any:
    """The formula, with a mean; without one the divergence is infinite, too."""

    def divergence(p: Pareto, q: Any) -> Tensor:
        finite = Pareto(p.scale, kiln.where(p.alpha > 1, p.alpha, 2.0), validate_args=False)
        return kiln.where(p.alpha > 1, formula(finite, q), kiln.inf)

    return divergence


def _to_exponential(p: Any, q: Exponential) -> Tensor:
    result: Tensor = q.rate * p.mean - q.rate.log() - p.entropy()
    return result


def _to_gamma(p: Any, q: Gamma) -> Tensor:
    constant = q.concentration.lgamma() - q.concentration * q.rate.log()
    weights = q.rate * p.mean - (q.concentration - 1) * _mean_log(p)
    result: Tensor = constant + weights - p.entropy()
    return result


def _to_gumbel(p: Any, q: Gumbel) -> Tensor:
    fall = (q.loc / q.scale).exp() * _mean_fall(p, q.scale)
    result: Tensor = q.scale.log() + (p.mean - q.loc) / q.scale + fall - p.entropy()
    return result


_register([Beta, ContinuousBernoulli, Exponential, Gamma], Normal, _to_normal)
_register([Gumbel, Laplace, Uniform], Normal, _to_normal)
_register([Pareto], Normal, _pareto_to_normal)
_register([Beta, ContinuousBernoulli, Gamma], Exponential, _to_exponential)
_register([Beta, Exponential], Gamma, _to_gamma)
_register([Pareto], Exponential, _pareto_to(_to_exponential))
_register([Pareto], Gamma, _pareto_to(_to_gamma))
_register([Exponential, Gamma, Normal, Uniform], Gumbel, _to_gumbel)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _outside(p, 0, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _outside(p, 0, _to_gamma(p, q))


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    mean_log = p.mean * q.logits - kiln.nn.functional.softplus(q.logits) + q._log_constant()
    result: Tensor = -p.entropy() - mean_log
    return _outside(p, 0, result, 1) if isinstance(p, Uniform) else result


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _to_uniform(p: Beta | ContinuousBernoulli, q: Uniform) -> Tensor:
    result = (q.high - q.low).log() - p.entropy()
    return kiln.where((q.low > 0) | (q.high < 1), kiln.inf, result)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    mean_log = (q.concentration1 - 1) * _mean_log(p)
    mean_log = mean_log + (q.concentration0 - 1) * _mean_log(mirrored)
    constant = q._log_normalizer(q.concentration1, q.concentration0)
    return _outside(p, 0, constant - mean_log - p.entropy(), 1)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    constant = -q.alpha.log() - q.alpha * q.scale.log()
    return _outside(p, q.scale, constant + (q.alpha + 1) * _mean_log(p) - p.entropy())


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    # The mean of |x - q.loc| is that of a folded normal distribution.
    distance = p.loc - q.loc
    z = distance / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z**2).exp()
    folded = folded + distance * (z * math.sqrt(0.5)).erf()
    return (2 * q.scale).log() + folded / q.scale - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()
