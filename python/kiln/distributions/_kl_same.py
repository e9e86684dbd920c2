"""Divergences of two distributions of numbers of one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln
from kiln.nn.functional import softplus

from .. import errors
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

if TYPE_CHECKING:
    from .._C import Tensor


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    success = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    failure = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    # Logits of probabilities 0 and 1 are finite, and so would be the result.
    missing = ((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1))
    return kiln.where(missing, kiln.inf, success + failure)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    constant_q = q.concentration1.lgamma() + q.concentration0.lgamma() - total_q.lgamma()
    constant_p = p.concentration1.lgamma() + p.concentration0.lgamma() - total_p.lgamma()
    slopes = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    slopes = slopes + (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return constant_q - constant_p + slopes - (total_p - total_q) * total_p.digamma()


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise errors.NotImplementedError(
            "kl_divergence: for Binomial p.total_count must be >= q.total_count"
        )
    one = _bernoulli(
        Bernoulli(logits=p.logits, validate_args=False),
        Bernoulli(logits=q.logits, validate_args=False),
    )
    return kiln.where(p.total_count > q.total_count, kiln.inf, p.total_count * one)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # Chyzak and Nielsen, 2019
    distance = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return (distance / (4 * p.scale * q.scale)).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    weights = p.mean * (p.logits - q.logits) - softplus(p.logits) + softplus(q.logits)
    return weights + p._log_constant() - q._log_constant()


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizers (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        raise errors.NotImplementedError(
            f"kl_divergence: there is no formula for p of {type(p).__name__} and q of"
            f" {type(q).__name__}; register_kl adds one"
        )
    params, normalizer, slopes = p._normalizer_and_slopes()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for mine, theirs, slope in zip(params, others, slopes, strict=True):
        term = (mine - theirs) * slope
        result = result + term.reshape((*result.shape, -1)).sum(-1)
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    result = q.concentration * (p.rate / q.rate).log()
    result = result + q.concentration.lgamma() - p.concentration.lgamma()
    result = result + (p.concentration - q.concentration) * p.concentration.digamma()
    return result + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    # The mean of -log q: E z + E exp(-z) + log scale, with z = (x - q.loc) / q.scale.
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    mean = distance + euler_constant * ratio
    growth = ((1 + ratio).lgamma() - distance).exp()
    return mean + growth - ratio.log() - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (1 / p.probs - 1) * (-q.probs).log1p() - q.probs.log()


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + ratio * (-distance / p.scale).exp() + distance / q.scale - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return kiln.where(p.scale < q.scale, kiln.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return kiln.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return kiln.where((q.low > p.low) | (q.high < p.high), kiln.inf, result)
