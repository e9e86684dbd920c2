"""torch.cuda.amp's names, which turn themselves off where there is no CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..amp import GradScaler as _GradScaler
from ..amp import autocast as _autocast
from ..amp import custom_bwd as _custom_bwd
from ..amp import custom_fwd as _custom_fwd

if TYPE_CHECKING:
    from typing import Any

    from .._C import dtype


class autocast(_autocast):
    """kiln.amp.autocast for "cuda"."""

    def __init__(
        self, enabled: bool = True, dtype: dtype | None = None, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """kiln.amp.GradScaler for "cuda"."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(fwd: Any = None, *, cast_inputs: dtype | None = None) -> Any:
    """kiln.amp.custom_fwd for "cuda"."""
    return _custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """kiln.amp.custom_bwd for "cuda"."""
    return _custom_bwd(bwd, device_type="cuda")
