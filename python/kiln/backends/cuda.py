"""CUDA: is not there. Its settings are kept and change nothing."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_built() -> bool:
    """False."""
    return False


class _Matmul:
    """How matrices are multiplied on a CUDA device."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"


matmul = _Matmul()
_sdp = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True}


def enable_flash_sdp(enabled: bool) -> None:
    """Kept, and changes nothing."""
    _sdp["flash"] = bool(enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Kept, and changes nothing."""
    _sdp["math"] = bool(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Kept, and changes nothing."""
    _sdp["mem_efficient"] = bool(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Kept, and changes nothing."""
    _sdp["cudnn"] = bool(enabled)


def flash_sdp_enabled() -> bool:
    """What was set."""
    return _sdp["flash"]


def math_sdp_enabled() -> bool:
    """What was set."""
    return _sdp["math"]


def mem_efficient_sdp_enabled() -> bool:
    """What was set."""
    return _sdp["mem_efficient"]


def cudnn_sdp_enabled() -> bool:
    """What was set."""
    return _sdp["cudnn"]


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """The four settings within a with block."""
    before = dict(_sdp)
    _sdp.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _sdp.update(before)
