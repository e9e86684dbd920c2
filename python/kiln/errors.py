"""What Kiln raises. Each class is an Error and also the builtin exception that fits, so that
`except ValueError` catches kiln.errors.ValueError."""

from ._C import _errors

__all__ = [name for name in vars(_errors) if not name.startswith("_")]
globals().update({name: getattr(_errors, name) for name in __all__})
