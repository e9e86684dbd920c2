"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln

from .. import errors
from . import constraints
from ._matrices import factor_of_inverse, only_matrix, trace_of_ratio
from ._shapes import diagonal, expanded
from ._standard_gamma import log_standard_gamma
from .exp_family import ExponentialFamily
from .utils import broadcast_all, lazy_property

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """The sum of x x^T for df normal vectors x with mean 0 and covariance V: D x D matrices.

    df: > D - 1; it need not be whole. One of three gives V, each [..., D, D]: covariance_matrix;
    precision_matrix, its inverse; scale_tril, its lower Cholesky factor, which is the fastest.
    validate_args: as in Distribution.

    rsample has exact gradients; it draws by Bartlett's decomposition.

    >>> wishart = kiln.distributions.Wishart(kiln.tensor(3.), scale_tril=kiln.eye(2))
    >>> wishart.mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = only_matrix(
            "Wishart",
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if not isinstance(df, kiln.Tensor):
            df = broadcast_all(df)[0].to(matrix.device, matrix.dtype)
        event = matrix.shape[-2:]
        batch = kiln.broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df = expanded(df, batch)
        self.__dict__[name] = expanded(matrix, (*batch, *event))
        self._event_shape = kiln.Size(event)
        if not (self.df > event[-1] - 1).all():
            raise errors.ValueError(
                f"Wishart: parameter df must be > {event[-1] - 1} for matrices of"
                f" {event[-1]} rows; got {df}"
            )
        super().__init__(batch, event, validate_args=validate_args)
        if name == "scale_tril":
            self._factor = matrix
        elif name == "covariance_matrix":
            self._factor = kiln.linalg.cholesky(matrix)
        else:
            self._factor = factor_of_inverse(matrix)

    @property
    def arg_constraints(self) -> Mapping[str, Constraint]:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of V."""
        return self._factor.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """V."""
        return (self._factor @ self._factor.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of V."""
        matrix = kiln.cholesky_inverse(self._factor)
        return matrix.expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - D - 1) V; NaN for df <= D + 1."""
        factor = self.df - self._event_shape[-1] - 1
        factor = kiln.where(factor > 0, factor, kiln.nan)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (V_ij^2 + V_ii V_jj), element by element."""
        v = self.covariance_matrix
        own = diagonal(v)
        products = own.unsqueeze(-1) * own.unsqueeze(-2)
        return self.df[..., None, None] * (v**2 + products)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        n, dtype, device = self._event_shape[-1], self.df.dtype, self.df.device
        # L A A^T L^T: A has roots of Chi2(df - i) on its diagonal and normal numbers below.
        freedom = self.df.unsqueeze(-1) - kiln.arange(n, dtype=dtype, device=device)
        roots = (0.5 * log_standard_gamma((0.5 * freedom).expand(shape[:-1]))).exp()
        roots = (math.sqrt(2) * roots).to(dtype).clamp(min=kiln.finfo(dtype).tiny)
        below = kiln.randn(shape, dtype=dtype, device=device).tril(-1)
        factor = self._factor @ (below + roots.diag_embed())
        return factor @ factor.mT

    def _half_log_det(self) -> Tensor:
        return diagonal(self._factor).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, half = self._event_shape[-1], 0.5 * self.df
        factor = kiln.linalg.cholesky(value)
        half_log_det = diagonal(factor).log().sum(-1)
        constant = -half * (n * math.log(2) + 2 * self._half_log_det()) - half.mvlgamma(n)
        weight = (self.df - n - 1) * half_log_det
        return constant + weight - 0.5 * trace_of_ratio(self._factor, factor)

    def _digamma(self) -> Tensor:
        """The derivative of mvlgamma at df / 2."""
        steps = kiln.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return (0.5 * (self.df.unsqueeze(-1) - steps)).digamma().sum(-1)

    def entropy(self) -> Tensor:
        n, half = self._event_shape[-1], 0.5 * self.df
        volume = (n + 1) * (0.5 * n * math.log(2) + self._half_log_det()) + half.mvlgamma(n)
        return volume - 0.5 * (self.df - n - 1) * self._digamma() + half * n

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        exponent = 0.5 * (self.df - self._event_shape[-1] - 1)
        return exponent, -0.5 * self.precision_matrix

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        n = y.shape[-1]
        half = x + 0.5 * (n + 1)
        return half.mvlgamma(n) - half * kiln.linalg.slogdet(-y)[1]
