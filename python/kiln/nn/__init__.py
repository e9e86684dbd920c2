"""Neural networks: modules, parameters, layers."""

from .._C import Buffer, Parameter
from . import functional, utils

Parameter.__module__ = Buffer.__module__ = "kiln.nn"

__all__ = ["Buffer", "Parameter", "functional", "utils"]
