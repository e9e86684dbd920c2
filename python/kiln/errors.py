"""What Kiln raises. Each class is an Error and also the builtin exception that fits, so that
`except ValueError` catches kiln.errors.ValueError."""

import builtins as _builtins

from ._C._errors import (
    AttributeError,
    AutodiffError,
    DeviceError,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    DTypeError,
    Error,
    IndexError,
    IoError,
    KeyError,
    LinAlgError,
    NotImplementedError,
    OutOfMemoryError,
    OverflowError,
    RuntimeError,
    ShapeError,
    TypeError,
    ValueError,
)


class AssertionError(Error, _builtins.AssertionError):
    """What PyTorch asserts of a user's calls: a step was left out, or an option makes no sense.

    >>> issubclass(kiln.errors.AssertionError, kiln.Error)
    True
    """


class FileNotFoundError(IoError, _builtins.FileNotFoundError):
    """There is no such file.

    >>> try:
    ...     kiln.load("no_such_file.npz")
    ... except kiln.errors.FileNotFoundError:
    ...     print("not there")
    not there
    """


__all__ = [
    "AssertionError",
    "AttributeError",
    "AutodiffError",
    "DTypeError",
    "DeviceError",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "Error",
    "FileNotFoundError",
    "IndexError",
    "IoError",
    "KeyError",
    "LinAlgError",
    "NotImplementedError",
    "OutOfMemoryError",
    "OverflowError",
    "RuntimeError",
    "ShapeError",
    "TypeError",
    "ValueError",
]
