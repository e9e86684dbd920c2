"""torch.functional's names, which kiln has itself."""

from __future__ import annotations

from . import (
    atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_shapes, broadcast_tensors,
    cartesian_prod, cdist, chain_matmul, einsum, meshgrid, norm, split, stft, istft, tensordot,
    unique, unique_consecutive, unravel_index,
)  # fmt: skip

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "meshgrid", "norm", "split",
    "stft", "tensordot", "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip
