"""PyTorch's path to the classes of parameters."""

from .._C import Buffer as Buffer, Param as Param, Parameter as Parameter

__all__ = ["Buffer", "Param", "Parameter"]
