"""What Kiln raises. Each class is an Error and also the builtin exception that fits, so that
`except ValueError` catches kiln.errors.ValueError."""

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
    RuntimeError,
    ShapeError,
    TypeError,
    ValueError,
)

__all__ = [
    "AttributeError",
    "AutodiffError",
    "DTypeError",
    "DeviceError",
    "Error",
    "IndexError",
    "IoError",
    "KeyError",
    "LinAlgError",
    "NotImplementedError",
    "RuntimeError",
    "ShapeError",
    "TypeError",
    "ValueError",
]
