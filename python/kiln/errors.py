"""What Kiln raises. Each class is an Error and also the builtin exception that fits, so that
`except ValueError` catches kiln.errors.ValueError."""

import builtins as _builtins

from ._C._errors import (
    AttributeError,
    AutodiffError,
    DeviceError,
    DTypeError,
    Error,
    IndexError,
    IoError,
    KeyError,
    LinAlgError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ShapeError,
    TypeError,
    ValueError,
)


class FileNotFoundError(IoError, _builtins.FileNotFoundError):
    """There is no such file."""


__all__ = [
    "AttributeError",
    "AutodiffError",
    "DTypeError",
    "DeviceError",
    "Error",
    "FileNotFoundError",
    "IndexError",
    "IoError",
    "KeyError",
    "LinAlgError",
    "NotImplementedError",
    "OverflowError",
    "RuntimeError",
    "ShapeError",
    "TypeError",
    "ValueError",
]
