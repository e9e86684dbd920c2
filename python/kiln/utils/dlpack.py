"""Tensors of other libraries over the same memory, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import from_dlpack

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the tensor's memory, which one library may take: its from_dlpack.

    >>> kiln.utils.dlpack.from_dlpack(kiln.utils.dlpack.to_dlpack(kiln.ones(2)))
    tensor([1., 1.])
    """
    return tensor.__dlpack__()
