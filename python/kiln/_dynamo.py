"""torch._dynamo's names for programs that import them. kiln.compile captures the ops that a function
calls, and traces no Python, so that there is nothing to switch off, to forbid or to configure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from .compiler import allow_in_graph, disable, is_compiling, reset

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "allow_in_graph", "config", "disable", "disallow_in_graph", "graph_break", "is_compiling",
    "mark_dynamic", "mark_static", "maybe_mark_dynamic", "reset",
]  # fmt: skip

config = SimpleNamespace()


def disallow_in_graph(fn: Any) -> Any:
    """fn itself.

    >>> kiln._dynamo.disallow_in_graph(abs)(-1)
    1
    """
    return fn


def graph_break(msg: str = "") -> None:
    """Does nothing.

    >>> kiln._dynamo.graph_break()
    """


def mark_dynamic(t: Any, index: Any = None, **options: Any) -> None:
    """Does nothing: a dim is free from its second size on (see kiln.compile).

    >>> kiln._dynamo.mark_dynamic(kiln.ones(2), 0)
    """


maybe_mark_dynamic = mark_static = mark_dynamic
