"""Docstrings of what is compiled, with arguments, shapes and examples.

What a binding or a row of a table says in a line stands there. The rest stands in the text files of
this folder, and is read when somebody first asks for a docstring. docs/docstrings.md says how to write
an entry; a test runs every example.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _C
from .._C import _errors, _metrics, _rl, _tokenizers, _train, _vision
from . import properties


def _finish(function: Any, text: str) -> str:
    if function.__module__.endswith("._optim"):
        return text  # has no entries; staticmethod() copies these texts when kiln is imported
    from . import reading  # here, for few programs ask and all import kiln

    return reading.docstring_of(function, text)


class ClassDocstring:
    """A class's __doc__, which is put together when it is read."""

    def __init__(self, line: str | None) -> None:
        self.line = line

    def __get__(self, instance: object, owner: type | None = None) -> str:
        from . import reading

        kind = type(instance) if owner is None else owner
        return reading.compose("", [self.line or ""], reading.name_of_class(kind))


def _attach(module: ModuleType) -> None:
    """Gives all classes of a module docstrings that are put together when they are read."""
    for kind in vars(module).values():
        if isinstance(kind, type) and not kind.__name__.startswith("_"):
            kind.__doc__ = ClassDocstring(kind.__doc__)  # type: ignore[assignment]


_C._set_docstrings(_finish)
for _module in (_C, _errors, _metrics, _rl, _tokenizers, _train, _vision):
    _attach(_module)
properties.attach()
