"""Vision: filters, morphology, connected components, colour spaces, transforms of images, boxes.

Images are [.., H, W], those in colour [.., 3, H, W] with numbers from 0 to 1.
"""

from typing import TYPE_CHECKING

from .._C import _vision

if TYPE_CHECKING:
    from .._C._vision import *  # noqa: F403
else:
    __all__ = [_name for _name in dir(_vision) if not _name.startswith("_")]
    for _name in __all__:
        globals()[_name] = getattr(_vision, _name)
    del _name

from . import transforms as transforms  # noqa: E402
