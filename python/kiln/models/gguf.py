"""GGUF, the format of llama.cpp's models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import kiln

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import StrPath


def load_gguf(path: StrPath, max_ratio: int = 64) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors by name, metadata) of a GGUF file. Weights in blocks of 8 or 4 bits (Q8_0, Q4_0) are
    quantized tensors, which `nn.functional.linear` takes; Q4_K is float32. `kiln.load` gives the
    tensors alone.

    >>> try:
    ...     kiln.models.load_gguf("no_such_file.gguf")
    ... except kiln.errors.FileNotFoundError:
    ...     print("not there")
    not there
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise kiln.errors.FileNotFoundError(f"load_gguf: there is no file {os.fsdecode(path)!r}")
    return kiln._C._load_gguf(path, max_ratio, None)
