"""Divergences of distributions of classes, vectors and matrices, and of those made of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from .. import errors
from ._matrices import squared_distance, trace_of_ratio
from ._shapes import sum_rightmost
from .categorical import Categorical
from .dirichlet import Dirichlet
from .independent import Independent
from .kl import kl_divergence, register_kl
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .one_hot_categorical import OneHotCategorical
from .transformed_distribution import TransformedDistribution
from .wishart import Wishart

if TYPE_CHECKING:
    from .._C import Tensor


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    # Logits of probabilities 0 are finite, and so would be the result.
    terms = kiln.where((q.probs == 0).expand(terms.shape), kiln.inf, terms)
    return kiln.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    constants = total.lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
    slopes = a.digamma() - total.digamma().unsqueeze(-1)
    return constants + ((a - b) * slopes).sum(-1)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise errors.NotImplementedError(
            "kl_divergence: the two Independent must have the same reinterpreted_batch_ndims; got"
            f" {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """A bijection changes nothing, if it is the same for both."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise errors.NotImplementedError(
            f"kl_divergence: {type(p).__name__} and {type(q).__name__} must have equal transforms"
            " and event_shape"
        )
    missing = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), max(missing, 0))


def _check_sizes(
    p: MultivariateNormal | LowRankMultivariateNormal,
    q: MultivariateNormal | LowRankMultivariateNormal,
) -> None:
    if p.event_shape != q.event_shape:
        raise errors.ValueError(
            f"kl_divergence: event_shape must be the same; got {list(p.event_shape)} and"
            f" {list(q.event_shape)}"
        )


def _from_parts(log_det: Tensor, trace: Tensor, distance: Tensor, size: int) -> Tensor:
    return 0.5 * (log_det + trace + distance - size)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_sizes(p, q)
    log_det = 2 * (q._half_log_det() - p._half_log_det())
    trace = trace_of_ratio(q._factor, p._factor)
    distance = squared_distance(q._factor, q.loc - p.loc)
    return _from_parts(log_det, trace, distance, p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_full(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_sizes(p, q)
    log_det = 2 * q._half_log_det() - p._log_det()
    trace = trace_of_ratio(q._factor, p._factor)
    trace = trace + trace_of_ratio(q._factor, p._diag.sqrt().diag_embed())
    distance = squared_distance(q._factor, q.loc - p.loc)
    return _from_parts(log_det, trace, distance, p.event_shape[0])


def _trace_by(q: LowRankMultivariateNormal, columns: Tensor) -> Tensor:
    """tr(C^T Q^-1 C): each column is a difference whose distance is known."""
    rows = columns.movedim(-1, 0)
    return q._squared_distance(rows).sum(0)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_sizes(p, q)
    log_det = q._log_det() - 2 * p._half_log_det()
    trace = _trace_by(q, p._factor)
    distance = q._squared_distance(q.loc - p.loc)
    return _from_parts(log_det, trace, distance, p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_sizes(p, q)
    log_det = q._log_det() - p._log_det()
    trace = _trace_by(q, p._factor) + _trace_by(q, p._diag.sqrt().diag_embed())
    distance = q._squared_distance(q.loc - p.loc)
    return _from_parts(log_det, trace, distance, p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Tensor:
    n = p.event_shape[-1]
    volumes = q.df * (q._half_log_det() - p._half_log_det())
    trace = 0.5 * p.df * (trace_of_ratio(q._factor, p._factor) - n)
    constants = (0.5 * q.df).mvlgamma(n) - (0.5 * p.df).mvlgamma(n)
    return volumes + trace + constants + 0.5 * (p.df - q.df) * p._digamma()
