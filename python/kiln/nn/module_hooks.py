"""Hooks of calls: before and after forward, and in the backward pass; of one module or of all."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from .. import _C
from ..utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from .._typing import Hook2, Hook3, Hook4

if TYPE_CHECKING:
    from typing import Any

    from .._C import ModuleBase as _Base
else:
    _Base = object  # Module itself derives from ModuleBase

# kind -> the dict that its functions are in
_PLACES = {
    "forward_pre": "_forward_pre_hooks",
    "forward": "_forward_hooks",
    "backward_pre": "_backward_pre_hooks",
    "backward": "_backward_hooks",
    "deprecated": "_deprecated_backward_hooks",
}

_global: dict[str, OrderedDict[int, Any]] = {place: OrderedDict() for place in _PLACES.values()}


class _CallHandle(RemovableHandle):
    """Also tells Kiln, which then need not look."""

    def __init__(self, hooks, hook, register, options):
        super().__init__(hooks, hook)
        self._options = options
        try:
            self._registered = register(self.id)
        except BaseException:
            self.remove()
            raise

    _registered = None
    _options = None

    def remove(self):
        super().remove()
        if self._options is not None:
            self._options.pop(self.id, None)
        if self._registered is not None:
            self._registered.remove()


def _add_global(kind, hook, with_kwargs=False, always_call=False):
    place = _PLACES[kind]

    def register(id):
        return _C._register_hook(None, kind, place, id, False, with_kwargs, always_call)

    return _CallHandle(_global[place], hook, register, None)


def register_module_forward_pre_hook(hook: Hook2) -> RemovableHandle:
    """hook(module, args) before the forward of every module; first of its pre-hooks.

    >>> seen = []
    >>> hook = nn.register_module_forward_pre_hook(lambda module, args: seen.append(len(args)))
    >>> _ = nn.ReLU()(kiln.zeros(1))
    >>> hook.remove()
    >>> seen
    [1]
    """
    return _add_global("forward_pre", hook)


def register_module_forward_hook(
    hook: Hook3 | Hook4, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """hook(module, args, output) after the forward of every module; first of its hooks.

    >>> seen = []
    >>> hook = nn.register_module_forward_hook(lambda module, args, output: seen.append(output.item()))
    >>> _ = nn.ReLU()(kiln.tensor([-1.]))
    >>> hook.remove()
    >>> seen
    [0.0]
    """
    return _add_global("forward", hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Hook2) -> RemovableHandle:
    """hook(module, grad_output) in the backward pass of every module.

    >>> seen, net = [], nn.ReLU()
    >>> hook = nn.register_module_full_backward_pre_hook(lambda net, gradients: seen.append("seen"))
    >>> net(kiln.ones(1, requires_grad=True)).sum().backward()
    >>> hook.remove()
    >>> seen
    ['seen']
    """
    return _add_global("backward_pre", hook)


def register_module_full_backward_hook(hook: Hook3) -> RemovableHandle:
    """hook(module, grad_input, grad_output) in the backward pass of every module.

    >>> seen, net = [], nn.ReLU()
    >>> hook = nn.register_module_full_backward_hook(lambda net, inputs, outputs: seen.append("seen"))
    >>> net(kiln.ones(1, requires_grad=True)).sum().backward()
    >>> hook.remove()
    >>> seen
    ['seen']
    """
    return _add_global("backward", hook)


def register_module_backward_hook(hook: Hook3) -> RemovableHandle:
    """Deprecated: use register_module_full_backward_hook.

    >>> nn.register_module_backward_hook(lambda module, inputs, outputs: None).remove()
    """
    return _add_global("deprecated", hook)


# Hooks of what modules are given: kind -> functions by number.
registration: dict[str, OrderedDict[int, Any]] = {
    kind: OrderedDict() for kind in ("parameter", "buffer", "module")
}

_KINDS = {"parameter": _C.Parameter, "buffer": _C.Tensor, "module": _C.ModuleBase}


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """What the hooks make of a part that a module is given."""
    for hook in list(registration[kind].values()):
        result = hook(module, name, value)
        if result is None:
            continue
        if not isinstance(result, _KINDS[kind]):
            raise TypeError(
                f"the hook of the registration of '{name}' gave a {type(result).__name__}; expected a "
                f"{kind} or None"
            )
        value = result
    return value


def register_module_parameter_registration_hook(hook: Hook3) -> RemovableHandle:
    """hook(module, name, parameter) when a module is given one; what it returns takes its place.

    >>> seen = []
    >>> hook = nn.modules.module.register_module_parameter_registration_hook(
    ...     lambda module, name, parameter: seen.append(name))
    >>> _ = nn.Linear(2, 2)
    >>> hook.remove()
    >>> seen
    ['weight', 'bias']
    """
    return RemovableHandle(registration["parameter"], hook)


def register_module_buffer_registration_hook(hook: Hook3) -> RemovableHandle:
    """hook(module, name, buffer) when a module is given one; what it returns takes its place.

    >>> seen = []
    >>> hook = nn.modules.module.register_module_buffer_registration_hook(
    ...     lambda module, name, buffer: seen.append(name))
    >>> _ = nn.BatchNorm1d(2)
    >>> hook.remove()
    >>> seen
    ['running_mean', 'running_var', 'num_batches_tracked']
    """
    return RemovableHandle(registration["buffer"], hook)


def register_module_module_registration_hook(hook: Hook3) -> RemovableHandle:
    """hook(module, name, child) when a module is given a child; what it returns takes its place.

    >>> seen = []
    >>> hook = nn.modules.module.register_module_module_registration_hook(
    ...     lambda module, name, child: seen.append((name, type(child).__name__)))
    >>> _ = nn.Sequential(nn.ReLU())
    >>> hook.remove()
    >>> seen
    [('0', 'ReLU')]
    """
    return RemovableHandle(registration["module"], hook)


class _Hooks:
    """The dict of one kind of hooks, which a module has from its first use on."""

    def __init__(self, name):
        self._name = name

    def __get__(self, module, cls=None):
        return self if module is None else module.__dict__.setdefault(self._name, OrderedDict())


class HooksMixin(_Base):
    """The part of Module that registers hooks of calls."""

    _forward_pre_hooks: OrderedDict[int, Any] = _Hooks("_forward_pre_hooks")  # type: ignore[assignment]
    _forward_hooks: OrderedDict[int, Any] = _Hooks("_forward_hooks")  # type: ignore[assignment]
    _backward_pre_hooks: OrderedDict[int, Any] = _Hooks("_backward_pre_hooks")  # type: ignore[assignment]
    _backward_hooks: OrderedDict[int, Any] = _Hooks("_backward_hooks")  # type: ignore[assignment]

    def _add_hook(self, kind, hook, prepend=False, with_kwargs=False, always_call=False):
        place = _PLACES[kind]
        state = self.__dict__
        if "_modules" not in state:
            raise AttributeError("cannot register hooks before Module.__init__() call")
        hooks = state.setdefault(place, OrderedDict())
        options = state.setdefault(place + "_options", {})

        def register(id):
            options[id] = (with_kwargs, always_call)
            return _C._register_hook(self, kind, place, id, prepend, with_kwargs, always_call)

        handle = _CallHandle(hooks, hook, register, options)
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def _restore_hooks(self):
        """After a copy or unpickling: registers what the dicts hold, in their order."""
        for kind, place in _PLACES.items():
            options = self.__dict__.get(place + "_options", {})
            for id in self.__dict__.get(place, ()):
                with_kwargs, always_call = options.get(id, (False, False))
                _C._register_hook(self, kind, place, id, False, with_kwargs, always_call)

    def register_forward_pre_hook(
        self, hook: Hook2 | Hook3, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) before every forward; what it returns takes the arguments' place.

        with_kwargs: hook(module, args, kwargs), which returns None or (args, kwargs). prepend:
        before the hooks that this module has already.
        """
        return self._add_hook("forward_pre", hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Hook3 | Hook4,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, output) after every forward; what it returns takes output's place.

        with_kwargs: hook(module, args, kwargs, output). always_call: also when forward raises.
        """
        return self._add_hook("forward", hook, prepend, with_kwargs, always_call)

    def register_full_backward_hook(
        self, hook: Hook3, prepend: bool = False
    ) -> RemovableHandle:
        """hook(module, grad_input, grad_output) when the gradients of the inputs are computed.

        It may return a tuple in grad_input's place. With it, forward gets views of its inputs and
        the caller a view of the output, which must not be modified in place.
        """
        return self._add_hook("backward", hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Hook2, prepend: bool = False
    ) -> RemovableHandle:
        """hook(module, grad_output) before the gradients of the inputs are computed.

        It may return a tuple in grad_output's place.
        """
        return self._add_hook("backward_pre", hook, prepend)

    def register_backward_hook(self, hook: Hook3) -> RemovableHandle:
        """Deprecated: use register_full_backward_hook."""
        return self._add_hook("deprecated", hook)


