"""PyTorch's older path to the profiler: see kiln.profiler."""

from ..profiler import profile, record_function

__all__ = ["profile", "record_function"]
