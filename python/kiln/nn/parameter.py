"""PyTorch's path to the classes of parameters."""

from .._C import Buffer as Buffer, Param as Param, Parameter as Parameter
from .lazy import UninitializedParameter as UninitializedParameter

__all__ = ["Buffer", "Param", "Parameter", "UninitializedParameter"]
