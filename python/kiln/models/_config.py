"""Configurations of language models, read from the `config.json` beside public weights."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Self

    from .._typing import StrPath


class Config:
    """Base of the configurations, which are dataclasses."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From a dict, such as a `config.json` holds. Unknown fields are left out."""
        if not isinstance(values, dict):
            raise TypeError(f"{cls.__name__}: expected a dict; got {type(values).__name__}")
        known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]  # its subclasses are dataclasses
        return cls(**{name: value for name, value in values.items() if name in known})

    @classmethod
    def from_json_file(cls, path: StrPath) -> Self:
        """From a `config.json`."""
        with open(path, encoding="utf-8") as file:
            return cls.from_dict(json.load(file))

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]

    def require_positive(self, *names: str) -> None:
        """Raises ValueError unless these fields are at least 1."""
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be an int of at least 1; got {value!r}"
                )

    def require_multiple(self, name: str, of: str) -> None:
        """Raises ValueError unless one field is a multiple of another."""
        value, unit = getattr(self, name), getattr(self, of)
        if value % unit:
            raise ValueError(
                f"{type(self).__name__}: {name} must be a multiple of {of}; got {value} and {unit}"
            )


class Output:
    """What a language model gives: attributes, and an item for each that is not None."""

    def __init__(self, **values: Any) -> None:
        self._names = [name for name, value in values.items() if value is not None]
        for name, value in values.items():
            setattr(self, name, value)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def to_tuple(self) -> tuple[Any, ...]:
        """The values that are not None, in their order."""
        return tuple(getattr(self, name) for name in self._names)

    def keys(self) -> list[str]:
        """The names of the values that are not None."""
        return list(self._names)

    def __getitem__(self, key: str | int | slice) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(key)
            return getattr(self, key)
        return self.to_tuple()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Output({', '.join(self._names)})"
