"""Module: the base of every layer and model.

A module's parts are in three dicts, _parameters, _buffers and _modules, which attribute access
reads and writes. Calls and the hooks around them are Kiln's own (kiln._C.ModuleBase); what walks
over a tree does so by calling the parts' own methods, so that a class may override any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import Buffer, ModuleBase, Param, Parameter, Tensor
from .module_burn import BurnMixin
from .module_cast import CastMixin
from .module_hooks import HooksMixin, registered, registration
from .module_state import StateMixin
from .module_tree import TreeMixin

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

_MISSING = object()
_parameter_hooks, _buffer_hooks = registration["parameter"], registration["buffer"]
_module_hooks = registration["module"]


def _class_name(value):
    return type(value).__name__


class _CallSignature:
    """inspect.signature(module): that of its forward. Classes keep their own."""

    def __get__(self, module, cls=None):
        if module is None:
            return None
        import inspect

        return inspect.signature(module.forward)


class Module(TreeMixin, CastMixin, StateMixin, BurnMixin, HooksMixin, ModuleBase):
    """Base of all modules: assign parameters, buffers and modules as attributes, write forward().

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x):
            return self.fc(x).relu()

    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = nn.Linear(3, 2)
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> net = Net()
    >>> net(kiln.zeros(5, 3)).shape, [name for name, _ in net.named_parameters()]
    (kiln.Size([5, 2]), ['layer.weight', 'layer.bias'])
    """

    training: bool
    call_super_init = False
    dump_patches = False
    __signature__ = _CallSignature()
    _version = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{_class_name(self)}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{_class_name(self)}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = {}
        self._init_state_hooks()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:
        forward: Callable[..., Any]
    else:

        def forward(self, *input: Tensor) -> Tensor:
            """What the module computes. Every subclass writes its own, with any arguments."""
            raise NotImplementedError(
                f'Module [{_class_name(self)}] is missing the required "forward" function'
            )

    def compile(self, *args: Any, **kwargs: Any) -> Self:
        """Compiles forward in place, with the arguments of kiln.compile; returns self.

        Hooks run around it as before, and the state dict stays as it is.
        """
        from .._compile import compile

        self.__dict__["forward"] = compile(type(self).forward.__get__(self), *args, **kwargs)
        return self

    # ---- Registration

    def _check_name(self, name, kind, place):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_class_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in place and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, or None, which state_dict() and the like ignore."""
        parameters = self.__dict__.get("_parameters")
        if parameters is None:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_class_name(param)}' object to parameter '{name}' "
                    "(kiln.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    "be created explicitly. To express one parameter as a function of another, "
                    "compute it in forward()."
                )
            if _parameter_hooks:
                param = registered("parameter", self, name, param)
        parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state and not trained; in state_dict() only if persistent."""
        buffers = self.__dict__.get("_buffers")
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_class_name(tensor)}' object to buffer '{name}' "
                "(kiln.Tensor or None required)"
            )
        buffers[name] = registered("buffer", self, name, tensor) if _buffer_hooks else tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module, or None."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_class_name(module)} is not a Module subclass")
        modules = self.__dict__.get("_modules")
        if modules is None:
            raise AttributeError("cannot assign module before Module.__init__() call")
        self._check_name(name, "module", modules)
        modules[name] = registered("module", self, name, module) if _module_hooks else module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as add_module."""
        self.add_module(name, module)

    # ---- Attributes (reading one that is no plain attribute: ModuleBase.__getattr__)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in state:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, state, self._buffers, self._modules)
            self.register_parameter(name, value)
            return
        if isinstance(value, Param):
            if "_parameters" not in state:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, state, self._buffers, self._modules, self._parameters)
            self._register_param(name, value)
            return
        if name in state.get("_parameters", ()):
            self._set_none("_parameters", name, value, "parameter", "kiln.nn.Parameter")
            return
        if isinstance(value, Module):
            modules = state.get("_modules")
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, state, self._buffers)
            modules[name] = registered("module", self, name, value) if _module_hooks else value
            return
        if name in state.get("_modules", ()):
            self._set_none("_modules", name, value, "child module", "kiln.nn.Module")
            return
        if isinstance(value, Buffer):
            if "_buffers" not in state:
                raise AttributeError("cannot assign buffers before Module.__init__() call")
            self._forget(name, state)
            self.register_buffer(name, value, value.persistent)
            return
        if name in state.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_class_name(value)}' as buffer '{name}' "
                    "(kiln.Tensor or None expected)"
                )
            state["_buffers"][name] = (
                registered("buffer", self, name, value) if _buffer_hooks else value
            )
            return
        object.__setattr__(self, name, value)

    def _set_none(self, place, name, value, kind, wanted):
        if value is not None:
            raise TypeError(
                f"cannot assign '{_class_name(value)}' as {kind} '{name}' "
                f"({wanted} or None expected)"
            )
        if place == "_modules" and _module_hooks:
            value = registered("module", self, name, value)
        self.__dict__[place][name] = value
        self.__dict__.get("_params", {}).pop(name, None)

    def _forget(self, name, *places):
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                self.__dict__.get("_params", {}).pop(name, None)
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = set(dir(type(self))) | set(self.__dict__)
        names |= {*self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    # ---- Copies

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, default in self._state_hook_defaults():
            self.__dict__.setdefault(name, default)
        self._restore_hooks()

    # ---- Printing

    def _get_name(self):
        return _class_name(self)

    def extra_repr(self) -> str:
        """What stands between the parentheses when the module prints; one line or several."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = []
        for name, module in self._modules.items():
            children.append(f"({name}): " + repr(module).replace("\n", "\n  "))
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({''.join(lines)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"
