"""Subclasses of tensors and of parameters, made as PyTorch makes them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from . import _C

if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor


def make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
    """The values of data, with its memory and without its history, as a tensor of that subclass, which
    is a leaf that requires a gradient or not. The class's __init__ does not run."""
    if not (inspect.isclass(cls) and issubclass(cls, _C.Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )
    if issubclass(cls, _C.Parameter):
        out = _new(cls)
        _parameter_of(out, data, require_grad)
        return out
    if issubclass(cls, _C.Buffer):
        raise TypeError("_make_subclass: a Buffer is made by its own __init__")
    out = data.detach().as_subclass(cls)
    return out.requires_grad_() if require_grad else out


setattr(_C.Tensor, "_make_subclass", staticmethod(make_subclass))


# ---- Subclasses of Tensor. As in PyTorch, __new__ makes the tensor, so that an __init__ may do without.
# (A Tensor itself is made without these.)

_new = _C._allocate
_tensor_of = _C.Tensor.__init__


def _tensor_new(cls: Any, *values: Any, **kwargs: Any) -> Any:
    out = _new(cls)
    if not issubclass(cls, (_C.Parameter, _C.Buffer)):  # which are made by their __init__
        _tensor_of(out, *values, **kwargs)
    return out


def _tensor_init(self: Any, *values: Any, **kwargs: Any) -> None:
    """Does nothing: __new__ has made the tensor."""


# ---- Subclasses of Parameter. One with a __new__ of its own gets its tensor there, as in PyTorch, and
# then its __init__ must not make it again. (Parameter itself is made without these.)

_parameter_of = _C.Parameter.__init__


def _parameter_new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    out = _new(cls)
    if cls.__new__ is not _parameter_new:
        _parameter_of(out, *args, **kwargs)
    return out


def _parameter_init(self: Any, *args: Any, **kwargs: Any) -> None:
    if type(self).__new__ is _parameter_new or not isinstance(self, _C.Parameter):
        _parameter_of(self, *args, **kwargs)


_signature = inspect.Signature(
    [
        inspect.Parameter("data", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
        inspect.Parameter("requires_grad", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=True),
    ]
)
for _function in (_parameter_new, _parameter_init):
    _first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    _parameters = [_first, *_signature.parameters.values()]
    setattr(_function, "__signature__", _signature.replace(parameters=_parameters))
del _function, _first, _parameters, _signature
_C.Parameter.__new__ = staticmethod(_parameter_new)  # type: ignore[assignment, method-assign]
_C.Parameter.__init__ = _parameter_init  # type: ignore[method-assign]
_C.Tensor.__new__ = staticmethod(_tensor_new)  # type: ignore[assignment, method-assign]
_C.Tensor.__init__ = _tensor_init  # type: ignore[method-assign]
