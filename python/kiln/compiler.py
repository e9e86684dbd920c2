"""What concerns kiln.compile."""

from ._compile import compile, is_compiling

__all__ = ["compile", "is_compiling"]
