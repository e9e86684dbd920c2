"""Linear algebra, with the names of torch.linalg."""

from typing import TYPE_CHECKING

from .._C._errors import LinAlgError as LinAlgError
from .._C._linalg import *  # noqa: F401,F403
from .._C import _linalg

if not TYPE_CHECKING:
    __all__ = ["LinAlgError", *(name for name in dir(_linalg) if not name.startswith("_"))]
