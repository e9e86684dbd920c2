"""Shapes: dims that are summed over, added, or taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor


def check_dims(owner: str, name: str, value: object, dims: int = 1) -> None:
    """Raises unless the value is a tensor of so many dims or more."""
    if not isinstance(value, _C.Tensor):
        raise errors.TypeError(f"{owner}: {name} must be a Tensor; got {type(value).__name__}")
    if value.dim() < dims:
        wanted = "one dim" if dims == 1 else f"{dims} dims"
        raise errors.ValueError(
            f"{owner}: {name} must have {wanted} or more; got shape {list(value.shape)}"
        )


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    """The sums over the last `count` dims."""
    if count == 0:
        return value
    return value.reshape((*value.shape[: value.dim() - count], -1)).sum(-1)


def expanded(value: Tensor, shape: Sequence[int]) -> Tensor:
    """The value, expanded to a shape; itself if it has it.

    So that a parameter stays a leaf: a distribution may then be made once and used in many steps of
    training, each of which frees its graph.
    """
    return value if tuple(value.shape) == tuple(shape) else value.expand(shape)


def diagonal(matrix: Tensor) -> Tensor:
    """The diagonals of matrices, [..., D, D]; also of those that were expanded."""
    return matrix.contiguous().diagonal(dim1=-2, dim2=-1)
