"""How parameters begin: each function fills its tensor in place, without recording."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .. import errors

from .._C._init import (
    calculate_gain,
    constant_,
    dirac_,
    eye_,
    kaiming_normal_,
    kaiming_uniform_,
    normal_,
    ones_,
    orthogonal_,
    sparse_,
    trunc_normal_,
    uniform_,
    xavier_normal_,
    xavier_uniform_,
    zeros_,
)

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """What a weight [out, in, *kernel] adds up for one output, and what one input goes into."""
    if tensor.dim() < 2:
        raise errors.ValueError(
            f"fan in and fan out: expected a weight of two dims or more; got {tensor.dim()}"
        )
    field = tensor[0][0].numel() if tensor.dim() > 2 else 1
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """One of the two, by the name "fan_in" or "fan_out"."""
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise errors.ValueError(f"expected a mode of {modes}; got {mode!r}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _older(function: Callable[..., Any], example: str) -> Callable[..., Any]:
    """A function under its name without the _, as PyTorch still has it."""
    name = function.__name__.removesuffix("_")

    def older(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"""{name}_() under its older name, with a warning.

    >>> {example}
    """
    return older


constant = _older(constant_, "nn.init.constant(kiln.empty(2), 3.).tolist() == [3, 3]\n    True")
dirac = _older(dirac_, "nn.init.dirac(kiln.empty(1, 1, 3)).tolist()\n    [[[0.0, 1.0, 0.0]]]")
eye = _older(eye_, "nn.init.eye(kiln.empty(2, 2)).tolist()\n    [[1.0, 0.0], [0.0, 1.0]]")
kaiming_normal = _older(kaiming_normal_, "w = nn.init.kaiming_normal(kiln.empty(2, 3))")
kaiming_uniform = _older(kaiming_uniform_, "w = nn.init.kaiming_uniform(kiln.empty(2, 3))")
normal = _older(normal_, "w = nn.init.normal(kiln.empty(2), std=0.1)")
orthogonal = _older(orthogonal_, "w = nn.init.orthogonal(kiln.empty(2, 2))")
sparse = _older(sparse_, "w = nn.init.sparse(kiln.empty(2, 2), 0.5)")
uniform = _older(uniform_, "w = nn.init.uniform(kiln.empty(2), -1, 1)")
xavier_normal = _older(xavier_normal_, "w = nn.init.xavier_normal(kiln.empty(2, 3))")
xavier_uniform = _older(xavier_uniform_, "w = nn.init.xavier_uniform(kiln.empty(2, 3))")
