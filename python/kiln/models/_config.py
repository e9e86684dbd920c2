"""Configurations of language models, read from the `config.json` beside public weights."""

import dataclasses
import json


class Config:
    """Base of the configurations, which are dataclasses."""

    @classmethod
    def from_dict(cls, values):
        """From a dict, such as a `config.json` holds. Unknown fields are left out."""
        if not isinstance(values, dict):
            raise TypeError(f"{cls.__name__}: expected a dict; got {type(values).__name__}")
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})

    @classmethod
    def from_json_file(cls, path):
        """From a `config.json`."""
        with open(path, encoding="utf-8") as file:
            return cls.from_dict(json.load(file))

    def to_dict(self):
        return dataclasses.asdict(self)

    def require_positive(self, *names):
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"{type(self).__name__}: {name} must be an int of at least 1; got {value!r}"
                )

    def require_multiple(self, name, of):
        value, unit = getattr(self, name), getattr(self, of)
        if value % unit:
            raise ValueError(
                f"{type(self).__name__}: {name} must be a multiple of {of}; got {value} and {unit}"
            )


class Output:
    """What a language model gives: attributes, and an item for each that is not None."""

    def __init__(self, **values):
        self._names = [name for name, value in values.items() if value is not None]
        for name, value in values.items():
            setattr(self, name, value)

    def to_tuple(self):
        return tuple(getattr(self, name) for name in self._names)

    def keys(self):
        return list(self._names)

    def __getitem__(self, key):
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(key)
            return getattr(self, key)
        return self.to_tuple()[key]

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"Output({', '.join(self._names)})"
