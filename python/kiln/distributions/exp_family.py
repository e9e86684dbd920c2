"""Exponential families."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from .. import errors
from .distribution import Distribution

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with densities p(x; t) = exp(<s(x), t> - F(t) + k(x)).

    batch_shape, event_shape, validate_args: as in Distribution.

    t are the natural parameters, s(x) the sufficient statistics, F the log normalizer and k the
    carrier measure. A subclass gives _natural_params, _log_normalizer(*t) and _mean_carrier_measure
    (the mean of k); its entropy follows from the derivative of F (Nielsen and Nock, 2010).

    >>> isinstance(kiln.distributions.Normal(0., 1.), kiln.distributions.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise errors.NotImplementedError(f"{type(self).__name__} has no _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise errors.NotImplementedError(f"{type(self).__name__} has no _log_normalizer()")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise errors.NotImplementedError(f"{type(self).__name__} has no _mean_carrier_measure")

    def _normalizer_and_slopes(self) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
        """t, F(t) and its gradient, all connected with the parameters."""
        with kiln.enable_grad():
            params = [
                p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params
            ]
            normalizer = self._log_normalizer(*params)
            slopes = kiln.autograd.grad(normalizer.sum(), params, create_graph=True)
        return params, normalizer, tuple(slopes)

    def entropy(self) -> Tensor:
        params, normalizer, slopes = self._normalizer_and_slopes()
        result: Tensor = normalizer - self._mean_carrier_measure
        for param, slope in zip(params, slopes, strict=True):
            term = param * slope
            result = result - term.reshape((*self._batch_shape, -1)).sum(-1)
        return result
