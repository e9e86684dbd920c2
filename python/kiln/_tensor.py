"""PyTorch's path to the class Tensor: torch._tensor.Tensor."""

from ._C import Tensor as Tensor

__all__ = ["Tensor"]
