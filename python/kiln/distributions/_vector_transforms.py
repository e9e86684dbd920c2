"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import kiln
from kiln.nn import functional as F

from .. import errors
from . import constraints
from ._scalar_transforms import _Plain
from ._shapes import diagonal
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor


class SoftmaxTransform(_Plain):
    """y = softmax(x) over the last dim; the inverse takes log(y). cache_size: as in Transform.

    It is not bijective, since adding a number to all of x does not change y. StickBreakingTransform
    is.

    >>> kiln.distributions.transforms.SoftmaxTransform()(kiln.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        return _at_least("SoftmaxTransform", shape, 1)

    inverse_shape = forward_shape


def _at_least(name: str, shape: Sequence[int], dims: int) -> kiln.Size:
    if len(shape) < dims:
        raise errors.ValueError(f"{name}: expected at least {dims} dims; got shape {list(shape)}")
    return kiln.Size(shape)


class StickBreakingTransform(_Plain):
    """From K - 1 real numbers to K probabilities: each number breaks its part off a stick.

    y_i = z_i times what is left, with z_i = sigmoid(x_i - log(K - i)) for i = 1, 2, ..: zeros give
    equal parts. cache_size: as in Transform.

    >>> kiln.distributions.transforms.StickBreakingTransform()(kiln.zeros(3))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        """log(K - i) for each of the K - 1 elements."""
        n = x.shape[-1]
        return kiln.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        shifted = x - self._offset(x)
        # Products of many factors in logs: nothing is lost where they are small.
        left = F.logsigmoid(-shifted).cumsum(-1)
        parts = F.logsigmoid(shifted) + F.pad(left[..., :-1], [1, 0])
        y = kiln.cat([parts, left[..., -1:]], -1).exp()
        return y.clamp(min=kiln.finfo(y.dtype).tiny)

    def _inverse(self, y: Tensor) -> Tensor:
        # What is left after a part is the sum of those that follow.
        left = y.flip(-1).cumsum(-1).flip(-1)[..., 1:]
        left = left.clamp(min=kiln.finfo(y.dtype).tiny)
        part = y[..., :-1]
        return part.log() - left.log() + self._offset(part)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # dy_i / dx_i = y_i (1 - z_i), and the matrix is triangular.
        return (y[..., :-1].log() + F.logsigmoid(self._offset(x) - x)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        shape = _at_least("StickBreakingTransform", shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Sequence[int]) -> kiln.Size:
        shape = _at_least("StickBreakingTransform", shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Plain):
    """From square matrices to lower triangular ones with a positive diagonal: exp of the diagonal.

    cache_size: as in Transform.

    >>> kiln.distributions.transforms.LowerCholeskyTransform()(kiln.tensor([[0., 9.], [2., 0.]]))
    tensor([[1., 0.],
            [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + diagonal(x).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + diagonal(y).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """From square matrices to positive definite ones: L L^T, with L of LowerCholeskyTransform.

    cache_size: as in Transform.

    >>> kiln.distributions.transforms.PositiveDefiniteTransform()(kiln.tensor([[0., 9.], [2., 0.]]))
    tensor([[1., 2.],
            [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(kiln.linalg.cholesky(y))


class CorrCholeskyTransform(_Plain):
    """From D (D - 1) / 2 real numbers to Cholesky factors of D x D correlation matrices.

    tanh gives partial correlations; each row of the factor is built of them like a stick that is
    broken (Lewandowski, Kurowicka and Joe, 2009). cache_size: as in Transform.

    >>> kiln.distributions.transforms.CorrCholeskyTransform()(kiln.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        partial = vec_to_tril_matrix(x.tanh(), -1)
        identity = kiln.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        # What is left of a row's length: 1 - tanh^2 = 1 / cosh^2, in logs.
        log_left = vec_to_tril_matrix(math.log(2) - x.abs() - F.softplus(-2 * x.abs()), -1)
        left = log_left.cumsum(-1).exp()
        return (partial + identity) * F.pad(left[..., :-1], [1, 0], value=1.0)

    @staticmethod
    def _left(y: Tensor) -> Tensor:
        """1 minus the sums of the squares before each element of a row."""
        return 1 - F.pad((y * y).cumsum(-1)[..., :-1], [1, 0])

    def _inverse(self, y: Tensor) -> Tensor:
        ratio = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(self._left(y), -1).sqrt()
        return ratio.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # dy/dtanh is the length that is left; the first of a row finds all of it.
        left = 0.5 * tril_matrix_to_vec(self._left(y), -1).log()
        return (left + 2 * (math.log(2) - x - F.softplus(-2 * x))).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> kiln.Size:
        shape = _at_least("CorrCholeskyTransform", shape, 1)
        n = (1 + math.isqrt(1 + 8 * shape[-1])) // 2
        if n * (n - 1) // 2 != shape[-1]:
            raise errors.ValueError(
                "CorrCholeskyTransform: the last dim must have D (D - 1) / 2 elements; got"
                f" {shape[-1]}"
            )
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape: Sequence[int]) -> kiln.Size:
        shape = _at_least("CorrCholeskyTransform", shape, 2)
        if shape[-1] != shape[-2]:
            raise errors.ValueError(
                f"CorrCholeskyTransform: expected square matrices; got shape {list(shape)}"
            )
        n = shape[-1]
        return shape[:-2] + (n * (n - 1) // 2,)
