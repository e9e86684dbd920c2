"""ModuleVisitor and ModuleMapper: seeing, and replacing, every parameter of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor
    from .module import Module


class _Path:
    """What walks over a tree and knows where it is."""

    _names = ()

    def path(self, name: str) -> str:
        """"layers.0.weight" for the parameter "weight" that is being shown."""
        return ".".join((*self._names, name))

    def enter_module(self, name: str, type_name: str) -> None:
        """Called before a module below the root is shown."""

    def exit_module(self, name: str, type_name: str) -> None:
        """Called after it."""


def _kind(param):
    """"float", "int" or "bool"; initializes nothing."""
    dtype = (param.lazy_dtype() or _C.float32) if isinstance(param, _C.Param) else param.dtype
    if dtype.is_floating_point or dtype.is_complex:
        return "float"
    return "bool" if dtype == _C._dtype("bool") else "int"


class ModuleVisitor(_Path):
    """Override what you need. A parameter that waits to be made is shown as a kiln.nn.Param.

    >>> class Count(nn.ModuleVisitor):
    ...     floats = 0
    ...     def visit_float(self, name, param):
    ...         self.floats += 1
    >>> count = Count()
    >>> nn.Linear(2, 1).visit(count)
    >>> count.floats
    2
    """

    def visit_float(self, name: str, param: Any) -> None:
        """A floating point or complex parameter."""

    def visit_int(self, name: str, param: Any) -> None:
        """An integer parameter."""

    def visit_bool(self, name: str, param: Any) -> None:
        """A parameter of bools."""

    def visit_buffer(self, name: str, buffer: Tensor) -> None:
        """A buffer."""

    def _visit(self, name, param):
        getattr(self, "visit_" + _kind(param))(name, param)


class ModuleMapper(_Path):
    """Each function takes a parameter and returns what is to be in its place: a tensor, a
    kiln.nn.Param, or the parameter itself.

    >>> class Zero(nn.ModuleMapper):
    ...     def map_float(self, name, param):
    ...         return kiln.zeros_like(param)
    >>> layer = nn.Linear(2, 1)
    >>> _ = layer.map(Zero())
    >>> layer.weight.abs().sum().item()
    0.0
    """

    def map_float(self, name: str, param: Any) -> Any:
        """For a floating point or complex parameter."""
        return param

    def map_int(self, name: str, param: Any) -> Any:
        """For an integer parameter."""
        return param

    def map_bool(self, name: str, param: Any) -> Any:
        """For a parameter of bools."""
        return param

    def _map(self, name, param):
        return getattr(self, "map_" + _kind(param))(name, param)

    def _map_param(self, param):
        made = self._map("", param)
        if made is not param:
            param.replace(made.val() if isinstance(made, _C.Param) else made)
        return param


def walk(module: Module, walker: Any, own: Callable[[Module], object]) -> None:
    """own(module) for a module and all below it, with the walker's path and its calls around."""
    own(module)
    before = walker._names
    for name, child in module._modules.items():
        if child is None:
            continue
        type_name = type(child).__name__
        walker.enter_module(name, type_name)
        walker._names = (*before, name)
        try:
            walk(child, walker, own)
        finally:
            walker._names = before
        walker.exit_module(name, type_name)
