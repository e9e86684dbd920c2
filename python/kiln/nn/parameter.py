"""PyTorch's path to the classes of parameters."""

from .._C import Buffer, Param, Parameter

__all__ = ["Buffer", "Param", "Parameter"]
