"""Special functions, with torch.special's names. They are differentiable unless they say otherwise."""

from typing import TYPE_CHECKING

from ._C import _special

if TYPE_CHECKING:
    from ._C._special import *  # noqa: F403
else:
    __all__ = [_name for _name in dir(_special) if not _name.startswith("_")]
    for _name in __all__:
        globals()[_name] = getattr(_special, _name)
    del _name
