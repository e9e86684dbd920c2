"""How parameters begin: each function fills its tensor in place, without recording."""

from __future__ import annotations

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
