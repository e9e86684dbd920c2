"""A weight by its direction and its norm, computed before each forward (Salimans & Kingma, 2016).

kiln.nn.utils.parametrizations.weight_norm is the newer form.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ... import _C, errors
from . import _forward_hook

if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ..._typing import M
    from ..module import Module


class WeightNorm:
    """The hook: weight = g v / |v|.

    >>> layer = nn.utils.weight_norm(nn.Linear(2, 1))
    >>> layer.weight_g.shape
    kiln.Size([1, 1])
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """g v / |v| as it is now."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return _forward_hook.weight_of(v, g, self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Puts a hook on the module."""
        if _forward_hook.find(module, WeightNorm, name)[1] is not None:
            raise errors.RuntimeError(
                f"weight_norm: Cannot register two weight_norm hooks on the same parameter {name}"
            )
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        _forward_hook.check_made("weight_norm", weight, name, module)
        del module._parameters[name]
        norm = _forward_hook.norm_except(weight.detach(), fn.dim)
        module.register_parameter(name + "_g", _C.Parameter(norm))
        module.register_parameter(name + "_v", _C.Parameter(weight.data))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """The weight as an ordinary parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, _C.Parameter(weight.data))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """The parameter becomes name_g, norms for each index of dim, and name_v, directions.

    dim=None: one norm of all. Deprecated: parametrizations.weight_norm.

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.weight_norm(nn.Linear(2, 1))
    >>> layer.weight_g.shape, layer.weight_v.shape
    (kiln.Size([1, 1]), kiln.Size([1, 2]))
    """
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undoes weight_norm.

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(2, 1)))
    >>> "weight" in dict(layer.named_parameters())
    True
    """
    key, hook = _forward_hook.find(module, WeightNorm, name)
    if hook is None:
        raise errors.ValueError(f"weight_norm of '{name}' not found in {module}")
    hook.remove(module)
    _forward_hook.drop(module, key)
    return module
