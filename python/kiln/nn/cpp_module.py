"""CppModule: a module written in C++ as a part of a tree of Python modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import CppHandle
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, Self, SupportsIndex

    from .._C import Tensor


class CppModule(Module):
    """Wraps a module of C++, which takes one tensor and returns one.

    Its parameters, buffers and children are the C++ module's own: what is done to them here (a step
    of an optimizer, loading a state dict, casting) is done there.

    handle: of a module made by a C++ extension.

    >>> issubclass(nn.CppModule, nn.Module)
    True
    """

    def __init__(self, handle: CppHandle) -> None:
        super().__init__()
        if not isinstance(handle, CppHandle):
            raise TypeError(f"CppModule: expected a CppHandle; got {type(handle).__name__}")
        self.__dict__["_handle"] = handle
        self._parameters.update(handle.parameters())
        buffers, hidden = handle.buffers()
        self._buffers.update(buffers)
        self._non_persistent_buffers_set.update(hidden)
        for name, child in handle.children().items():
            self._modules[name] = CppModule(child) if isinstance(child, CppHandle) else child

    def forward(self, input: Tensor) -> Tensor:
        return self._handle(input)

    def __setattr__(self, name: str, value: Any) -> None:
        for place in ("_parameters", "_modules"):
            if name in self.__dict__.get(place, ()):
                raise AttributeError(
                    f"CppModule: '{name}' belongs to a module of C++ and cannot be replaced; write "
                    "into it instead"
                )
        super().__setattr__(name, value)
        if name in self.__dict__.get("_buffers", ()):
            self._handle.set_buffer(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        for name, buffer in self._buffers.items():
            self._handle.set_buffer(name, buffer)
        return self

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self._handle.set_training(mode)
        return self

    def extra_repr(self) -> str:
        return self._handle.extra_repr()

    def _get_name(self):
        return self._handle.type_name()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"CppModule: a module of C++ ({self._get_name()}) cannot be pickled or copied; save its "
            "state_dict()"
        )
