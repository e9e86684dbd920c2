"""What concerns kiln.compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._compile import compile, is_compiling

if TYPE_CHECKING:
    from typing import Any

__all__ = ["allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """fn itself, or a decorator that gives its function; recursive and reason are PyTorch's. What
    kiln.compile captures are the ops that a function calls, and what
    cannot be captured is computed eagerly.

    >>> kiln.compiler.disable(abs)(-1)
    1
    """
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """fn itself, a function; see disable().

    >>> kiln.compiler.allow_in_graph(abs)(-1)
    1
    """
    return fn


def is_dynamo_compiling() -> bool:
    """As is_compiling().

    >>> kiln.compiler.is_dynamo_compiling()
    False
    """
    return is_compiling()


def is_exporting() -> bool:
    """False: kiln.capture runs functions as they are.

    >>> kiln.compiler.is_exporting()
    False
    """
    return False


def reset() -> None:
    """Does nothing: each compiled function keeps its own graphs, and has a reset() of its own.

    >>> kiln.compiler.reset()
    """


def cudagraph_mark_step_begin() -> None:
    """Does nothing: compiled functions use no CUDA graphs, whose memory a new step would reuse.

    >>> kiln.compiler.cudagraph_mark_step_begin()
    """
