"""Reads the text files of this folder. Without the compiled module, for stubs are made with it, too.

    == A family of functions
    A paragraph that the docstrings of all of them get: shapes, dtypes, errors.

    # name
    What this function has of its own.
    >>> kiln.name(kiln.tensor([1, 2]))
    tensor([1, 2])

    # other = name

    # Class.one Class.two
    Of both.

`other` does the same as `name`. A method of Tensor, and a function in place, take the
entry of the function unless they have one; their example is made from the function's.
"""

from __future__ import annotations

import functools
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

PARTS = {  # of the compiled module, and where the package has them
    "_functional": "nn.functional.",
    "_linalg": "linalg.",
    "_fft": "fft.",
    "_special": "special.",
    "_init": "nn.init.",
}
_SHORT = {"nn.functional.": "F.", "nn.": "nn.", "Tensor.": "Tensor."}  # how examples write a name


class Entry(NamedTuple):
    """What the text files say of one name."""

    text: str
    shared: str
    example: str


def spelled(name: str) -> str:
    """A name as examples call it: F.relu of nn.functional.relu, kiln.abs of abs."""
    for prefix, short in _SHORT.items():
        if name.startswith(prefix):
            return short + name.removeprefix(prefix)
    return f"kiln.{name}"


def _entries_of(text: str) -> Iterator[tuple[str, Entry | str]]:
    """(name, entry) and (name, the name that it is the same as), in their order."""
    shared = ""
    for block in re.split(r"^(?=(?:==|#) )", text, flags=re.M):
        heading, _, body = block.strip("\n").partition("\n")
        if heading.startswith("== "):
            shared = body.strip()
        elif heading.startswith("# "):
            name, _, same = heading[2:].partition(" = ")
            if same:
                yield name, same
                continue
            words, mark, example = body.partition(">>> ")
            for each in name.split():
                yield each, Entry(words.strip(), shared, (mark + example).strip())


@functools.cache
def entries() -> dict[str, Entry]:
    """All entries by name: abs, Tensor.view, nn.functional.relu, linalg.inv, nn.Linear, .."""
    found: dict[str, Entry] = {}
    aliases: dict[str, str] = {}
    for path in sorted(pathlib.Path(__file__).parent.glob("*.txt")):
        for name, entry in _entries_of(path.read_text(encoding="utf-8")):
            if name in found or name in aliases:
                raise ValueError(f"{path.name}: a second entry of {name}")
            if isinstance(entry, str):
                aliases[name] = entry
            else:
                found[name] = entry
    for name, same in aliases.items():
        entry = found[same]
        found[name] = entry._replace(example=_renamed(entry.example, same, name))
    return found


def _renamed(example: str, old: str, new: str) -> str:
    if new.startswith("Tensor."):
        return re.sub(rf"\.{re.escape(old.rpartition('.')[2])}\(", f".{new.rpartition('.')[2]}(", example)
    return re.sub(rf"\b{re.escape(spelled(old))}\(", f"{spelled(new)}(", example)


def _argument_end(text: str, start: int) -> int:
    """Where the argument that begins at start ends: its comma, or the closing parenthesis."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            if depth == 0:
                return i
            depth -= 1
        elif text[i] == "," and depth == 0:
            return i
    return len(text)


def as_method(example: str, function: str, method: str) -> str:
    """kiln.add(x, y) as x.add(y) or x.add_(y), everywhere in an example."""
    call = f"{spelled(function)}("
    while (at := example.find(call)) >= 0:
        start = at + len(call)
        end = _argument_end(example, start)
        rest = example[end:].removeprefix(",").lstrip() if example[end : end + 1] == "," else example[end:]
        example = f"{example[:at]}{example[start:end]}.{method}({rest}"
    return example


def entry_of(name: str) -> Entry | None:
    """The entry of a name; of a method of Tensor or a form in place that of the function."""
    all_entries = entries()
    if name in all_entries or not name.startswith("Tensor."):
        return all_entries.get(name)
    method = name.removeprefix("Tensor.")
    if method in all_entries:
        entry = all_entries[method]
        return entry._replace(example=as_method(entry.example, method, method))
    base = method.removesuffix("_")
    if base == method or base not in all_entries:
        return None
    entry = all_entries[base]
    words = f"{base}() in place: the tensor itself takes the values, and is the result."
    return Entry(f"{words} {entry.text}".strip(), entry.shared, as_method(entry.example, base, method))
