"""__torch_function__: how classes derived from Tensor, and modes, see the functions that meet them.

src/overrides.cpp asks for handlers; this says what they are, and which functions have them. The
tables are made when a program first derives from Tensor, enters a mode or passes an object with a
__torch_function__.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from . import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


@classmethod  # type: ignore[misc]
def _torch_function(
    cls: Any, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """What every function comes to that meets a tensor of a class derived from Tensor: the function
    itself, with its results of that class. A class replaces this to see the functions.

    Args:
        func: the function, such as kiln.add or kiln.Tensor.add; kiln.Tensor.shape.__get__ for a
            property.
        types: the classes among the arguments that have a __torch_function__.
        args: the arguments by position.
        kwargs: those by name.

    >>> class Logged(kiln.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return super().__torch_function__(func, types, args, kwargs)
    >>> x = kiln.add(Logged([1.0]), 2)
    add
    >>> type(x).__name__
    'Logged'
    """
    return _C._torch_function(cls, func, types, tuple(args), kwargs)


def disabled(func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The __torch_function__ of classes that override nothing, as Parameter: func(*args, **kwargs)."""
    return _C._call_itself(func, tuple(args), kwargs)


class DisableTorchFunctionSubclass:
    """A context in which classes derived from Tensor override nothing, and results are plain tensors.

    >>> class Marked(kiln.Tensor):
    ...     pass
    >>> with kiln.overrides.DisableTorchFunctionSubclass():
    ...     type(Marked([1.0]) + 1).__name__
    'Tensor'
    """

    _all = False

    def __enter__(self) -> None:
        _C._switch_overrides(self._all, True)

    def __exit__(self, *error: object) -> None:
        _C._switch_overrides(self._all, False)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """The same, and modes override nothing either.

    >>> with kiln.overrides.DisableTorchFunction():
    ...     x = kiln.ones(1)
    """

    _all = True


# Settings and the like, which concern no tensor, and what must see objects as they are.
IGNORED = frozenset(
    """promote_types get_num_threads set_num_threads winograd_enabled set_winograd_enabled
    get_default_dtype set_default_dtype clear_autocast_cache autocast_increment_nesting
    autocast_decrement_nesting set_printoptions memory_stats reset_memory_stats memory_limit
    set_memory_limit empty_cache can_cast is_tensor manual_seed initial_seed seed get_rng_state
    set_rng_state is_grad_enabled is_anomaly_enabled is_anomaly_check_nan_enabled
    Tensor.__init__ Tensor.__new__ Tensor.__iter__ Tensor.__hash__ Tensor.as_subclass
    Tensor._make_subclass""".split()
)

# What operators are called: Tensor.__add__ is Tensor.add to a handler.
OPERATORS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div",
    "__itruediv__": "div_", "__matmul__": "matmul", "__mod__": "remainder", "__imod__": "remainder_", "__pow__": "pow",
    "__ipow__": "pow_", "__ifloordiv__": "floor_divide_", "__rand__": "bitwise_and",
    "__ror__": "bitwise_or", "__rxor__": "bitwise_xor", "__pos__": "positive", "__ne__": "ne", "__lt__": "lt",
    "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__neg__": "neg", "__abs__": "abs",
}  # fmt: skip


def _is_bound(value: Any) -> bool:
    return type(value).__name__ in ("nb_func", "nb_method")


def bound_functions() -> Iterator[tuple[str, Any, Any]]:
    """The compiled functions that can be overridden: a name, the function, and what handlers see."""
    for place in ("", "_functional", "_linalg", "_fft", "_special", "_init"):
        module = getattr(_C, place) if place else _C
        for name, value in vars(module).items():
            if _is_bound(value) and name[0] != "_" and name not in IGNORED:
                yield f"{place}.{name}" if place else name, value, value
    for name, value in vars(_C.Tensor).items():
        if f"Tensor.{name}" in IGNORED or (name[0] == "_" and not name.startswith("__")):
            continue
        if _is_bound(value):
            shown = getattr(_C.Tensor, OPERATORS.get(name, name))
            yield f"Tensor.{name}", value, shown
        elif isinstance(value, property) and _is_bound(value.fget):
            yield f"Tensor.{name}.__get__", value.fget, value.__get__


def layers() -> Iterator[tuple[str, Any, Any]]:
    """The same of layers written in C++: their forward."""
    from . import nn

    for name, value in vars(nn).items():
        if inspect.isclass(value) and inspect.ismethoddescriptor(vars(value).get("forward")):
            forward = vars(value)["forward"]
            yield f"nn.{name}.forward", forward, forward


def _overridable(function: Any) -> Any:
    """A function of Python's that asks who overrides it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _C._overriding():
            out = _C._override(call, args, kwargs)
            if out is not NotImplemented:
                return out
        return function(*args, **kwargs)

    return call


def python_functions() -> Iterator[tuple[str, Any, str, Any]]:
    """Functions of tensors that are written in Python: a name, and the place, name and value."""
    import kiln

    for name, value in list(vars(_C.Tensor).items()):
        hidden = f"Tensor.{name}" in IGNORED or (name[0] == "_" and name != "__contains__")
        if inspect.isfunction(value) and not hidden:
            yield f"Tensor.{name}", _C.Tensor, name, value
    for label, module in (("", kiln), ("nn.functional.", kiln.nn.functional)):
        for name, value in list(vars(module).items()):
            if not inspect.isfunction(value) or name[0] == "_":
                continue
            first = next(iter(inspect.signature(value).parameters), "")
            if first in ("input", "self", "x", "tensor"):
                yield f"{label}{name}", module, name, value


@functools.cache
def enable() -> None:
    """Makes the tables, once."""
    rows = [*bound_functions(), *layers()]
    from . import nn
    from .nn._forms import FORMS

    _C._set_forms({vars(getattr(nn, name))["forward"]: form for name, form in FORMS.items()})
    keeps_class = {_C.Tensor.grad.__get__}
    _C._set_overridable({function: shown for _, function, shown in rows}, keeps_class)
    for _, place, name, value in list(python_functions()):
        setattr(place, name, _overridable(value))


def override_from_now() -> None:
    """From now on, calls look for handlers among their arguments."""
    enable()
    if not _C._overriding():
        _C._classes_override()


@classmethod  # type: ignore[misc]
def _init_subclass(cls: Any, **kwargs: Any) -> None:
    super(_C.Tensor, cls).__init_subclass__(**kwargs)
    if cls.__torch_function__ is not disabled:
        override_from_now()


setattr(_C.Tensor, "__torch_function__", _torch_function)
setattr(_C.Tensor, "__init_subclass__", _init_subclass)
for _class in (_C.Parameter, _C.Buffer):
    setattr(_class, "__torch_function__", staticmethod(disabled))
_C._set_torch_functions(vars(_C.Tensor)["__torch_function__"].__func__, disabled)
setattr(_C, "_disabled_torch_function_impl", disabled)
for _switch in (DisableTorchFunctionSubclass, DisableTorchFunction):
    _switch.__module__ = "kiln.overrides"
    setattr(_C, _switch.__name__, _switch)
del _switch
