"""How optimizers of programs group tensors for the ops of lists: torch.utils._foreach_utils."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

    Lists = list[list[Tensor | None]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Where ops of lists are more than loops: nowhere."""
    return []


def _has_foreach_support(tensors: list[Tensor], device: Any) -> bool:
    """Whether ops of lists are more than loops there."""
    return False


def _device_has_foreach_support(device: Any) -> bool:
    """Whether ops of lists are more than loops there."""
    return False


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Lists, with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[Lists, list[int]]]:
    """(device, dtype) -> the lists, of equal lengths, with those entries whose tensor in the first list
    is there, and their indices, or none."""
    lengths = {len(tensors) for tensors in tensorlistlist}
    if len(lengths) > 1:
        raise RuntimeError(
            f"_group_tensors_by_device_and_dtype: expected lists of equal lengths; got {sorted(lengths)}"
        )
    found: dict[tuple[Any, Any], tuple[Lists, list[int]]] = {}
    for i, first in enumerate(tensorlistlist[0] if tensorlistlist else []):
        key = (None, None) if first is None else (first.device, first.dtype)
        lists, indices = found.setdefault(key, ([[] for _ in tensorlistlist], []))
        for group, tensors in zip(lists, tensorlistlist):
            group.append(tensors[i])
        if with_indices:
            indices.append(i)
    return found
