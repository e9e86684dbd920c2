"""Seeing and replacing the functions that meet tensors of a class of one's own: PyTorch's
torch.overrides.

A class derived from Tensor defines __torch_function__ and is told of every function that one of its
tensors meets. So is a class that is no tensor at all. A TorchFunctionMode is told of all functions
while it is on.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from . import _C, _overrides
from ._overrides import DisableTorchFunction, DisableTorchFunctionSubclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class TorchFunctionMode:
    """A context in which every function of tensors goes through __torch_function__ of this object,
    whatever its arguments are: functions that make tensors, too. A class derived from it defines
    that method.

    Inside of it the mode is off, so that `func(*args, **kwargs)` is the function itself, or the next
    mode's answer.

    >>> class Counted(kiln.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Counted() as mode:
    ...     x = kiln.ones(2) + 1
    >>> mode.calls
    2
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What the call func(*args, **kwargs) comes to. types: the classes among the arguments that
        have a __torch_function__."""
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_function__")

    def __enter__(self) -> Self:
        _overrides.enable()
        _C._push_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        _C._pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """An object of the class, made with these arguments: for `with Mode.push(): ...`."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing.

    >>> with kiln.overrides.BaseTorchFunctionMode():
    ...     x = kiln.ones(1)
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of relevant_args, a tuple, overrides functions.

    >>> kiln.overrides.has_torch_function((kiln.ones(1), 2))
    False
    """
    return _C._overrides_enabled() and len(_C._overloaded_args(tuple(relevant_args))) > 0


def has_torch_function_unary(arg: Any) -> bool:
    """has_torch_function of one argument, arg.

    >>> kiln.overrides.has_torch_function_unary(kiln.ones(1))
    False
    """
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function of arguments that are not in a tuple.

    >>> kiln.overrides.has_torch_function_variadic(kiln.ones(1), 2)
    False
    """
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the arguments' __torch_function__ make of a call: for functions of one's own.

    Args:
        public_api: the function that they are told of.
        relevant_args: the arguments whose classes are asked.
        args, kwargs: those of the call.

    Raises TypeError when all of them say NotImplemented.

    >>> class Halved(kiln.Tensor):
    ...     pass
    >>> def halve(x):
    ...     if kiln.overrides.has_torch_function_unary(x):
    ...         return kiln.overrides.handle_torch_function(halve, (x,), x)
    ...     return x / 2
    >>> halve(Halved([4.0]))
    Halved([2.])
    """
    overloaded = _C._overloaded_args(tuple(relevant_args))
    types = tuple(map(type, overloaded))
    for argument in overloaded:
        out = argument.__torch_function__(public_api, types, args, kwargs)
        if out is not NotImplemented:
            return out
    name = getattr(public_api, "__name__", str(public_api))
    raise TypeError(_C._nobody_handled(name, types))


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """A decorator: the function asks the arguments that dispatcher(*args, **kwargs) gives for their
    __torch_function__ first.

    >>> @kiln.overrides.wrap_torch_function(lambda x: (x,))
    ... def halve(x):
    ...     return x / 2
    >>> halve(kiln.ones(1))
    tensor([0.5000])
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether inp is a tensor or has a __torch_function__.

    >>> kiln.overrides.is_tensor_like(kiln.ones(1)), kiln.overrides.is_tensor_like([1])
    (True, False)
    """
    return isinstance(inp, _C.Tensor) or hasattr(inp, "__torch_function__")


def _rows() -> dict[str, Any]:
    """Every function that can be overridden, by its name within kiln."""
    _overrides.enable()
    places = {"_functional": "nn.functional", "_init": "nn.init"}
    found: dict[str, Any] = {}
    for name, _, shown in (*_overrides.bound_functions(), *_overrides.layers()):
        place, dot, last = name.rpartition(".")
        if last in _overrides.OPERATORS:  # another method's other name
            continue
        found[f"{places.get(place, place.lstrip('_'))}{dot}{last}"] = shown
    for name, *_, value in _overrides.python_functions():
        found[name] = value
    return found


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that can be overridden, by the module or class that has them.

    >>> kiln.add in kiln.overrides.get_overridable_functions()[kiln]
    True
    """
    import kiln

    found: dict[Any, list[Any]] = {}
    for name, function in _rows().items():
        place: Any = kiln
        for part in name.removesuffix(".__get__").split(".")[:-1]:
            place = getattr(place, part)
        if function not in found.setdefault(place, []):
            found[place].append(function)
    return found


def get_ignored_functions() -> set[Any]:
    """Functions that nothing overrides: settings, and what must see objects as they are.

    >>> kiln.manual_seed in kiln.overrides.get_ignored_functions()
    True
    """
    found = set()
    for name in _overrides.IGNORED:
        place, _, last = name.rpartition(".")
        found.add(getattr(_C.Tensor if place else _C, last))
    return found


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results Tensor.__torch_function__ leaves as they are.

    >>> kiln.Tensor.grad.__get__ in kiln.overrides.get_default_nowrap_functions()
    True
    """
    return {_C.Tensor.grad.__get__}  # type: ignore[attr-defined]


def get_testing_overrides() -> dict[Any, Callable[..., Any]]:
    """For every function that can be overridden a stand-in with its signature, which gives -1.

    >>> kiln.overrides.get_testing_overrides()[kiln.add](kiln.ones(1), 2)
    -1
    """
    found: dict[Any, Callable[..., Any]] = {}
    for function in _rows().values():

        def stand_in(*args: Any, **kwargs: Any) -> int:
            return -1

        try:
            setattr(stand_in, "__signature__", inspect.signature(function))
        except (TypeError, ValueError, AttributeError):
            pass
        found[function] = stand_in
    return found


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name of f, a function that can be overridden; None for others.

    >>> kiln.overrides.resolve_name(kiln.Tensor.add)
    'kiln.Tensor.add'
    """
    for name, function in _rows().items():
        if function == f:
            return f"kiln.{name}"
    return None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether func is one of Tensor's methods, or the reader of one of its properties.

    >>> kiln.overrides.is_tensor_method_or_property(kiln.Tensor.add)
    True
    """
    name = resolve_name(func)
    return name is not None and name.startswith("kiln.Tensor.")
