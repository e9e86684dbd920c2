"""PyTorch's path to the classes of parameters."""

from .._C import Buffer as Buffer, Param as Param, Parameter as Parameter
from .lazy import UninitializedParameter as UninitializedParameter



def is_lazy(param: object) -> bool:
    """Whether a parameter's shape is not known yet."""
    return isinstance(param, UninitializedParameter)


__all__ = ["Buffer", "Param", "Parameter", "UninitializedParameter", "is_lazy"]
