"""A weight divided by its largest singular value, before each forward (Miyato et al., 2018).

kiln.nn.utils.parametrizations.spectral_norm is the newer form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C, errors
from ...autograd.grad_mode import no_grad
from .. import functional as F
from . import _forward_hook

if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ..._typing import M
    from ..module import Module

_VERSION = 1  # of its part of a state dict: since then v is saved, and the weight itself is not


class SpectralNorm:
    """The hook: weight = weight_orig / (u' W v), with u and v by power iteration.

    >>> layer = nn.utils.spectral_norm(nn.Linear(2, 2))
    >>> "weight_orig" in dict(layer.named_parameters())
    True
    """

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise errors.ValueError(
                "Expected n_power_iterations to be positive, but got"
                f" n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """[size of dim, all others]."""
        if self.dim != 0:
            weight = weight.movedim(self.dim, 0)
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """weight_orig over its largest singular value, as u and v tell it."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t() @ u, dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix @ v, dim=0, eps=self.eps))
                # The next forward writes to u and v; this one's gradient needs them as they are.
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Puts a hook on the module."""
        if _forward_hook.find(module, SpectralNorm, name)[1] is not None:
            raise errors.RuntimeError(
                f"spectral_norm: Cannot register two spectral_norm hooks on the same parameter {name}"
            )
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = getattr(module, name)
        _forward_hook.check_made("spectral_norm", weight, name, module)
        with no_grad():
            rows, columns = fn.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(fn)
        module.register_state_dict_post_hook(_SavedVersion(fn))
        module.register_load_state_dict_pre_hook(_OlderState(fn))
        return fn

    def remove(self, module: Module) -> None:
        """The weight as an ordinary parameter again."""
        with no_grad():
            weight = self.compute_weight(module, False)
        for name in (self.name, self.name + "_u", self.name + "_v", self.name + "_orig"):
            delattr(module, name)
        module.register_parameter(self.name, _C.Parameter(weight.detach()))


class _SavedVersion:
    """Says in a state dict which layout it has."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        local_metadata.setdefault("spectral_norm", {})[self.fn.name + ".version"] = _VERSION


class _OlderState:
    """Finds v for a state dict that has the weight in its place."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata, strict, missing, unexpected, errs):
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        key = prefix + fn.name
        if version is not None or key not in state_dict:
            return
        needed = [key + "_orig", key, key + "_u"]
        if lacking := [k for k in needed if k not in state_dict]:
            missing.extend(lacking if strict else ())
            return
        with no_grad():
            original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            v = (matrix.t() @ matrix).pinverse() @ (matrix.t() @ u)
            state_dict[key + "_v"] = v * (sigma / u.dot(matrix.mv(v)))


def default_dim(module: Module, dim: int | None) -> int:
    """The dim of the outputs in a weight."""
    from ... import nn

    if dim is not None:
        return dim
    transposed = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    return 1 if isinstance(module, transposed) else 0


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """The parameter becomes name_orig; name is that over its largest singular value.

    It is estimated by power iteration, n_power_iterations with each forward in training, which
    keeps its vectors in the buffers name_u and name_v.

    module: whose parameter. n_power_iterations: how exact. eps: against division by 0. dim: of the
    outputs.

    >>> layer = nn.utils.spectral_norm(nn.Linear(2, 2))
    >>> "weight_orig" in dict(layer.named_parameters())
    True
    """
    SpectralNorm.apply(module, name, n_power_iterations, default_dim(module, dim), eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undoes spectral_norm.

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(2, 2)))
    >>> "weight" in dict(layer.named_parameters())
    True
    """
    key, hook = _forward_hook.find(module, SpectralNorm, name)
    if hook is None:
        raise errors.ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook.remove(module)
    _forward_hook.drop(module, key)
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for k, other in list(hooks.items()):
            if isinstance(other, (_SavedVersion, _OlderState)) and other.fn.name == name:
                del hooks[k]
    return module
