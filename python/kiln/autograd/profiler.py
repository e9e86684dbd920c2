"""PyTorch's older path to the profiler: see kiln.profiler."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..profiler import profile, record_function

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class emit_nvtx:  # noqa: N801  PyTorch's name
    """Marks for NVIDIA's profiler, which Kiln does not make: with enabled=False nothing happens, else
    it is an error. record_shapes: without effect.

    >>> with kiln.autograd.profiler.emit_nvtx(enabled=False):
    ...     pass
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Any:
        if self.enabled:
            raise errors.RuntimeError(
                f"{type(self).__name__}: Kiln makes no such marks; use kiln.profiler.profile"
            )
        return self

    def __exit__(self, *error: object) -> None:
        pass


class emit_itt(emit_nvtx):  # noqa: N801  PyTorch's name
    """Marks for Intel's profiler, as emit_nvtx.

    >>> with kiln.autograd.profiler.emit_itt(enabled=False):
    ...     pass
    """
