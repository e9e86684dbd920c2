"""Linear algebra, with the names of torch.linalg."""

from .._C._errors import LinAlgError
from .._C._linalg import *  # noqa: F401,F403
from .._C import _linalg

__all__ = ["LinAlgError", *(name for name in dir(_linalg) if not name.startswith("_"))]
