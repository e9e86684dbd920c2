"""Parametrizations that are often wanted: orthogonal weights, weight norm, spectral norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C, errors
from ... import linalg
from ...autograd.grad_mode import no_grad
from .. import functional as F
from ..module import Module
from . import _forward_hook, parametrize
from .spectral_norm import default_dim

if TYPE_CHECKING:
    from ..._typing import M

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _parameter(module, name):
    x = getattr(module, name, None)
    if not isinstance(x, _C.Tensor):
        raise errors.ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return x


# ---- Orthogonal


def _is_orthogonal(q):
    n, k = q.shape[-2:]
    one = _C.eye(k, dtype=q.dtype, device=q.device)
    return _C.allclose(q.mH @ q, one, atol=10.0 * n * _epsilon(q.dtype))


def _epsilon(dtype):
    from ... import finfo

    return finfo(dtype).eps


def _made_orthogonal(a):
    """Q of the decomposition a = Q R with a positive diagonal of R."""
    packed, tau = _C.geqrf(a)
    q = linalg.householder_product(packed, tau)
    return q * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A matrix without constraints as one with orthonormal columns, or rows where it is wide.

    With a base the result is base @ Q(x): x near zero stays near the value that was assigned
    (Lezcano-Casado, 2019).
    """

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise errors.ValueError(
                "The householder parametrization does not support complex tensors."
            )
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        q = self._reflected(x) if self.orthogonal_map == "householder" else self._mapped(x)
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if wide else q

    def _mapped(self, x):
        """The first columns of an orthogonal matrix, by a map from skew-symmetric ones."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = _C.cat([x, x.new_zeros(*x.shape[:-2], n, n - k)], -1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = linalg.matrix_exp(skew)
        else:
            one = _C.eye(n, dtype=x.dtype, device=x.device)
            q = linalg.solve(one - skew / 2, one + skew / 2)
        return q[..., :k]

    @staticmethod
    def _reflected(x):
        """The product of the reflections in x's columns; the diagonal has signs, no gradient."""
        a = x.tril(-1)
        tau = 2.0 / (1.0 + (a * a).sum(-2))
        signs = x.detach().diagonal(dim1=-2, dim2=-1).to(_C.int32)
        return linalg.householder_product(a, tau) * signs.unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise errors.ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of"
                f" shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        n, k = q.shape[-2:]
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise errors.NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley"
                    " parametrizations when use_trivialization=False."
                )
            packed, tau = _C.geqrf(q)
            signs = packed.diagonal(dim1=-2, dim2=-1).sign()
            signs = _C.where(tau == 0, -signs, signs)  # no reflection there: an entry of 1
            packed.diagonal(dim1=-2, dim2=-1).copy_(signs)
            return packed.mT if wide else packed
        if n != k:
            rest = _C.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            base = _made_orthogonal(_C.cat([q, rest], -1))
        else:
            base = q.clone() if _is_orthogonal(q) else _made_orthogonal(q)
        self.base = base
        # The signs of the reflections are -1: the product of them is then the unit matrix.
        out = _C.zeros_like(Q)
        out.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return out


def orthogonal(
    module: M,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> M:
    """Keeps the parameter orthogonal, or with orthonormal columns (rows, where it is wide).

    orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square and
    complex matrices, the last for others. use_trivialization: starts from the present value, made
    orthogonal, and moves from there.

    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2))
    >>> kiln.allclose(layer.weight @ layer.weight.T, kiln.eye(2), atol=1e-5)
    True
    """
    weight = _parameter(module, name)
    if weight.dim() < 2:
        raise errors.ValueError(
            "Expected a matrix or batch of matrices. Got a tensor of"
            f" {weight.dim()} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise errors.ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got:'
            f" {orthogonal_map}"
        )
    part = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, part, unsafe=True)


# ---- Weight norm


class _WeightNorm(Module):
    """original0, the norms, and original1, the directions."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return _forward_hook.weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return _forward_hook.norm_except(weight, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """The parameter by its norms, for each index of dim, and its directions (Salimans & Kingma, 2016).

    dim=None: one norm of all. State dicts of the older nn.utils.weight_norm load.

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    >>> layer.parametrizations.weight.original0.shape
    kiln.Size([1, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_older(module, state_dict, prefix, *_):
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module.register_load_state_dict_pre_hook(from_older)
    return module


# ---- Spectral norm


class _SpectralNorm(Module):
    """A weight over its largest singular value, which power iteration estimates."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        rank = weight.dim()
        if not -rank <= dim < rank:
            raise errors.IndexError(
                "Dimension out of range (expected to be in range of"
                f" [-{rank}, {rank - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise errors.ValueError(
                "Expected n_power_iterations to be positive, but got"
                f" n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % rank
        self.eps = eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = self._matrix(weight)
                for name, size in zip(("_u", "_v"), matrix.shape):
                    start = matrix.new_empty(size).normal_(0, 1)
                    self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
                self._iterate(matrix, 15)

    def _matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    @no_grad()
    def _iterate(self, matrix, count):
        for _ in range(count):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # Copies: the next forward writes to both, and this one's gradient needs them as they are.
        u, v = self._u.clone(), self._v.clone()
        return weight / _C.vdot(u, matrix.mv(v))

    def right_inverse(self, value):
        return value


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """The parameter over its largest singular value (Miyato et al., 2018).

    n_power_iterations improve the estimate at each use in training. dim: which dim of the weight
    the outputs are; others are flattened.

    module: whose parameter. name: what it is called. n_power_iterations: how exact. eps: against
    division by 0. dim: of the outputs.

    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(1, 1))
    >>> layer.weight.abs().round().item()
    1.0
    """
    weight = _parameter(module, name)
    part = _SpectralNorm(weight, n_power_iterations, default_dim(module, dim), eps)
    return parametrize.register_parametrization(module, name, part)
