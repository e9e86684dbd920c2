"""Names for annotations, as in torch.types."""

from __future__ import annotations

import builtins
from typing import Union

from ._C import Tensor as Tensor, device as _device, dtype as _dtype
from ._size import Size as Size

Number = Union[builtins.int, builtins.float, builtins.bool]
Device = Union[_device, str, int, None]
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size = Union[Size, list[int], tuple[int, ...]]
_TensorOrTensors = Union[Tensor, tuple[Tensor, ...], list[Tensor]]
FileLike = Union[str, bytes]
