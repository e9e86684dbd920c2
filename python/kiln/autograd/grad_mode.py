"""Where ops are recorded: context managers that are also decorators."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, overload

    from .._typing import P, R, T


class _GradMode:
    """Sets the mode on entry and puts the old one back at the end; nests and can be reused."""

    _mode = False

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> Self:
        self._before.append(_C.is_grad_enabled())
        _C._set_grad_enabled(self._mode)
        return self

    def __exit__(self, *_: object) -> None:
        _C._set_grad_enabled(self._before.pop())

    def clone(self) -> _GradMode:
        """Another one of the same kind."""
        return type(self)()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        if inspect.isclass(function):
            raise TypeError(f"{type(self).__name__} decorates functions; got the class {function}")
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function):
        # The mode holds while the generator runs, and not while its caller does.
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            send, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        item = send(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    send, value = generator.send, (yield item)
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    send, value = generator.throw, error

        return wrapped


def _decorator_without_call(cls: T) -> T:
    """Lets `@no_grad` stand for `@no_grad()`."""

    def __new__(subclass, function=None):
        if function is None:
            return object.__new__(subclass)
        return subclass()(function)

    cls.__new__ = __new__  # type: ignore
    return cls


@_decorator_without_call
class no_grad(_GradMode):
    """Ops are not recorded: `with kiln.no_grad():`, or `@kiln.no_grad()` before a function.

    >>> x = kiln.ones(1, requires_grad=True)
    >>> with kiln.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    _mode = False

    if TYPE_CHECKING:

        @overload
        def __new__(cls, function: Callable[P, R]) -> Callable[P, R]: ...  # type: ignore[misc]
        @overload
        def __new__(cls, function: None = None) -> Self: ...
        def __new__(cls, function: Any = None) -> Any: ...


@_decorator_without_call
class enable_grad(_GradMode):
    """Ops are recorded, also within no_grad.

    >>> x = kiln.ones(1, requires_grad=True)
    >>> with kiln.no_grad(), kiln.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    _mode = True

    if TYPE_CHECKING:

        @overload
        def __new__(cls, function: Callable[P, R]) -> Callable[P, R]: ...  # type: ignore[misc]
        @overload
        def __new__(cls, function: None = None) -> Self: ...
        def __new__(cls, function: Any = None) -> Any: ...


class inference_mode(_GradMode):
    """As no_grad. (PyTorch's also forbids later use in graphs; here that stays legal.)

    >>> x = kiln.ones(1, requires_grad=True)
    >>> with kiln.inference_mode():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = not mode

    def clone(self) -> inference_mode:
        """Another one of the same mode."""
        return inference_mode(not self._mode)


class set_grad_enabled(_GradMode):
    """Records or not, at once; as a context manager, until its end.

    >>> x = kiln.ones(1, requires_grad=True)
    >>> with kiln.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._mode = bool(mode)
        self._old = _C.is_grad_enabled()
        _C._set_grad_enabled(self._mode)

    def __enter__(self) -> Self:
        _C._set_grad_enabled(self._mode)
        return self

    def __exit__(self, *_: object) -> None:
        _C._set_grad_enabled(self._old)

    def clone(self) -> set_grad_enabled:
        """Another one of the same mode."""
        return set_grad_enabled(self._mode)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        _C._set_grad_enabled(self._old)
        return super().__call__(function)
