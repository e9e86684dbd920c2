"""Puts docstrings together: signatures, what a binding says, and the entry of the text files."""

from __future__ import annotations

import re
from typing import Any

from .. import _C
from .entries import PARTS, entries, entry_of


def _sentence(line: str) -> str:
    """The short text of a binding, with a capital letter and a full stop."""
    line = line.strip()
    first = re.match(r"([a-z]{2,})(?= [a-z(]|$)|([a-z]{2,})(?=,)", line)
    if first and not re.match(r"(log|exp|max|min|sin|cos|sqrt)\b", line):
        line = line[0].upper() + line[1:]
    return line if not line or line.endswith(".") else f"{line}."


def compose(signatures: str, lines: list[str], name: str) -> str:
    """A docstring: signatures, what a binding says, and the entry of the name."""
    entry = entry_of(name)
    parts = [signatures]
    short = [line for line in dict.fromkeys(lines) if line.strip() and "\n" not in line]
    parts.append(" ".join(map(_sentence, short)))
    parts += [line.strip() for line in dict.fromkeys(lines) if "\n" in line]
    if entry:
        parts += [entry.text, entry.shared, entry.example]
    return "\n\n".join(part for part in parts if part)


def name_of(function: Any) -> str | None:
    """The name of a bound function, as the entries have it; None if it is not of this package."""
    module, _, part = function.__module__.rpartition(".")
    if module.partition(".")[0] != "kiln" and part != "kiln":
        return None
    owner = getattr(_C, function.__qualname__.partition(".")[0], None)
    home = name_of_class(owner) if isinstance(owner, type) else ""
    if part in ("_C", "kiln") and home.startswith("nn."):
        return "nn." + function.__qualname__
    return PARTS.get(part, "" if part in ("_C", "kiln") else f"{part.strip('_')}.") + function.__qualname__


def name_of_class(kind: type) -> str:
    """The name of a class, as the entries have it: Tensor, nn.Linear, metrics.Accuracy, .."""
    _, *parts = kind.__module__.split(".")
    home = "nn" if parts[:1] == ["nn"] else parts[-1].lstrip("_") if parts else ""
    return f"{home}.{kind.__name__}" if home not in ("", "C") else kind.__name__


def _lines_of(function: Any) -> list[str]:
    """What the binding of a function says."""
    return [line for _, line, _ in getattr(function, "__nb_signature__", ()) if line]


def _lines_of_function(name: str) -> list[str]:
    """What the binding of a function says, for the method of its name or the form in place."""
    if not name.startswith("Tensor.") or name in entries():
        return []
    method = name.removeprefix("Tensor.")
    for place in (_C.Tensor, _C):
        for word in (method, method.removesuffix("_")):
            if lines := _lines_of(getattr(place, word, None)):
                return lines
    return []


def docstring_of(function: Any, text: str) -> str:
    """The docstring of a bound function, of which nanobind gives text."""
    name = name_of(function)
    if name is None:
        return text
    signatures = text.split("\n\n")[0].rstrip("\n")
    return compose(signatures, _lines_of(function) or _lines_of_function(name), name)
