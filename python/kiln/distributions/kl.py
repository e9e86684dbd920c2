"""Kullback-Leibler divergences: which function computes that of two distributions."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, TypeVar

from .. import errors
from .distribution import Distribution, check_distribution

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor

__all__ = ["kl_divergence", "register_kl"]

F = TypeVar("F", bound="Callable[..., Any]")
Pair = tuple[type[Distribution], type[Distribution]]

_registry: dict[Pair, Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[F], F]:
    """Decorates a function of (p, q) that computes KL(p || q) for p and q of these classes.

    type_p, type_q: the classes. Objects of subclasses use it too, unless a function of nearer
    classes is registered.

    >>> class Coin(kiln.distributions.Bernoulli):
    ...     pass
    >>> @kiln.distributions.register_kl(Coin, Coin)
    ... def kl_of_coins(p, q):
    ...     return kiln.tensor(7.)
    >>> kiln.distributions.kl_divergence(Coin(probs=0.5), Coin(probs=0.5))
    tensor(7.)
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise errors.TypeError(f"register_kl: expected classes of distributions; got {kind!r}")

    def register(function: F) -> F:
        _registry[type_p, type_q] = function
        _find.cache_clear()
        return function

    return register


@functools.cache
def _find(type_p: type[Any], type_q: type[Any]) -> Callable[[Any, Any], Any] | None:
    """The function of the nearest classes that were registered."""
    pairs = [(a, b) for a, b in _registry if issubclass(type_p, a) and issubclass(type_q, b)]
    if not pairs:
        return None
    orders = type_p.__mro__, type_q.__mro__
    ranks = {pair: (orders[0].index(pair[0]), orders[1].index(pair[1])) for pair in pairs}
    by_p = min(pairs, key=lambda pair: ranks[pair])
    by_q = min(pairs, key=lambda pair: ranks[pair][::-1])
    if _registry[by_p] is not _registry[by_q]:
        warnings.warn(
            f"kl_divergence({type_p.__name__}, {type_q.__name__}) could be"
            f" ({by_p[0].__name__}, {by_p[1].__name__}) or ({by_q[0].__name__},"
            f" {by_q[1].__name__}); register_kl({by_p[0].__name__}, {by_q[1].__name__}) decides",
            RuntimeWarning,
            stacklevel=3,
        )
    return _registry[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), the mean of log p(x) - log q(x) for draws x of p, of shape batch_shape.

    p, q: distributions of a pair of classes for which there is a formula. It is infinite where p
    has draws that q cannot have.

    >>> normal = kiln.distributions.Normal
    >>> kiln.distributions.kl_divergence(normal(1., 1.), normal(0., 1.))
    tensor(0.5000)
    """
    check_distribution("kl_divergence", "p", p)
    check_distribution("kl_divergence", "q", q)
    kinds: tuple[Any, Any] = type(p), type(q)
    function = _find(*kinds)
    if function is None:
        raise errors.NotImplementedError(
            f"kl_divergence: there is no formula for p of {type(p).__name__} and q of"
            f" {type(q).__name__}; register_kl adds one"
        )
    result: Tensor = function(p, q)
    return result
