"""Parameters that a module computes from others at each use: a symmetric or an orthogonal weight.

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

    register_parametrization(linear, "weight", Symmetric())

The module gets a class of its own, derived from its class, with a property in the parameter's place.
What the value is computed from is in module.parametrizations.
"""

from __future__ import annotations

import collections.abc
import contextlib
import copy
from typing import TYPE_CHECKING

from ... import _C, errors
from ...autograd.grad_mode import no_grad
from ..container import ModuleDict, ModuleList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..._C import Parameter, Tensor
    from ..._typing import M
    from ..module import Module

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    depth = 0
    values: dict[Any, Any] = {}  # by module and name


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Within it each value is computed at most once: for a weight that a loop uses many times.

    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2))
    >>> with nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if _Cache.depth == 0:
            _Cache.values = {}


def _register(module, name, x):
    if isinstance(x, _C.Parameter):
        module.register_parameter(name, x)
    else:
        module.register_buffer(name, x)


def _check_kept(got, wanted, what):
    """Raises ValueError unless `got` is a tensor of the shape and dtype of `wanted`."""
    if not isinstance(got, _C.Tensor):
        raise errors.ValueError(f"A {what} must return a tensor. Got {type(got).__name__}.")
    for attribute in ("dtype", "shape"):
        if getattr(got, attribute) != getattr(wanted, attribute):
            raise errors.ValueError(
                f"Registering a parametrization may not change the {attribute} of the tensor, unless"
                f" the `unsafe` flag is enabled; got {getattr(got, attribute)} from the {what},"
                f" expected {getattr(wanted, attribute)}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, one after another, and what the first is computed from.

    That is `original`, or `original0`, `original1`, .. where right_inverse gives several tensors.

    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.ReLU())
    >>> len(layer.parametrizations.weight)
    1
    """

    def __init__(
        self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        modules = list(modules)
        if not modules:
            raise errors.ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        wanted = _C.empty(original.shape, dtype=original.dtype, device="meta")
        with no_grad():
            new = original
            for part in reversed(list(self)):
                if hasattr(part, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = part.right_inverse(new)
        if not isinstance(new, (_C.Tensor, collections.abc.Sequence)):
            raise errors.ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, _C.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for attribute in ("dtype", "device"):
                if getattr(new, attribute) != getattr(original, attribute):
                    raise errors.ValueError(
                        "When `right_inverse` outputs one tensor, it may not change the"
                        f" {attribute}; got {getattr(new, attribute)}, expected"
                        f" {getattr(original, attribute)}"
                    )
            # The tensor stays the one that an optimizer may have.
            if new is not original:
                original.data = new.detach()
            _register(self, "original", original)
        else:
            for i, x in enumerate(new):
                if not isinstance(x, _C.Tensor):
                    raise errors.ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list,"
                        f" tuple...). Got element {i} of the sequence with type {type(x).__name__}."
                    )
                x = x.detach()
                if isinstance(original, _C.Parameter):
                    x = _C.Parameter(x, original.requires_grad)
                x.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", x)
        if not unsafe:
            _check_kept(self(), wanted, "parametrization")

    def right_inverse(self, value: Tensor) -> None:
        """Makes the originals such that the value is this one."""
        with no_grad():
            for part in reversed(list(self)):
                if not hasattr(part, "right_inverse"):
                    raise errors.RuntimeError(
                        f"parametrization {type(part).__name__} does not implement right_inverse."
                    )
                value = part.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, _C.Tensor):
                    raise errors.ValueError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                self._store_original("original", value, "The tensor")
                return
            if not isinstance(value, collections.abc.Sequence):
                raise errors.ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise errors.ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}."
                    f" Got a sequence of length {len(value)}."
                )
            for i, x in enumerate(value):
                if not isinstance(x, _C.Tensor):
                    raise errors.ValueError(
                        "'right_inverse' must return a sequence of tensors. Got element"
                        f" {i} of type {type(x).__name__}."
                    )
                self._store_original(f"original{i}", x, f"Tensor {i}")

    def _store_original(self, name, value, what):
        original = getattr(self, name)
        if value.dtype != original.dtype:
            raise errors.ValueError(
                f"{what} returned by `right_inverse` has dtype {value.dtype} while `{name}` has"
                f" dtype {original.dtype}"
            )
        original.data = value.detach().clone()

    def forward(self) -> Tensor:
        """The value."""
        parts = list(self)
        if self.is_tensor:
            x = parts[0](self.original)
        else:
            x = parts[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for part in parts[1:]:
            x = part(x)
        return x


# ---- The module's class


def _value(module, name):
    parametrization = module.parametrizations[name]
    if _Cache.depth == 0:
        return parametrization()
    key = (id(module), name)
    if key not in _Cache.values:
        _Cache.values[key] = parametrization()
    return _Cache.values[key]


def _property(name):
    def get(self):
        return _value(self, name)

    def set(self, value):
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def _no_pickle(self, *_):
    raise errors.RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()"
    )


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    names, own = tuple(self.parametrizations), type(self)
    self.__class__ = own.__bases__[0]  # whose way of being copied holds
    try:
        replica = copy.deepcopy(self, memo)
    finally:
        self.__class__ = own
    replica.__class__ = _class_with(type(replica), names)
    return replica


_classes: dict[Any, type] = {}


def _class_with(base, names):
    """A class derived from `base` with a property for each of these names."""
    key = (base, tuple(sorted(names)))
    if key not in _classes:
        body = {name: _property(name) for name in names}
        body |= {"__reduce_ex__": _no_pickle, "__deepcopy__": _deepcopy, "__module__": base.__module__}
        _classes[key] = type(f"Parametrized{base.__name__}", (base,), body)
    return _classes[key]


def _set_class(module, base, names):
    module.__class__ = _class_with(base, names) if names else base


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations: of that tensor, or of any.

    >>> nn.utils.parametrize.is_parametrized(nn.Linear(2, 2))
    False
    """
    found = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def type_before_parametrizations(module: Module) -> type[Module]:
    """The module's class without what this file adds.

    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.ReLU())
    >>> nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


# ---- Registering


def register_parametrization(
    module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> M:
    """Has module.<tensor_name> computed by `parametrization`, a module, from what it was; returns the module.

    A tensor may have several, which are applied in turn. Assigning to it needs their
    right_inverse(value), which also gives the first original; it may return several tensors, which
    forward then takes. Shape and dtype must stay, unless `unsafe`.

    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.ReLU())
    >>> bool((layer.weight >= 0).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_kept(after, before, "parametrization")
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    inverse = parametrization.right_inverse(after)
                    _check_kept(inverse, before, "parametrization.right_inverse")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise errors.ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with"
            f" name '{tensor_name}'"
        )
    parts = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    base = type_before_parametrizations(module)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parts
    _set_class(module, base, tuple(module.parametrizations))
    return module


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Makes the tensor an ordinary one again, and returns the module.

    leave_parametrized: with its present value; otherwise with the original, of which there must be
    one.

    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.ReLU())
    >>> layer = nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> nn.utils.parametrize.is_parametrized(layer)
    False
    """
    if not is_parametrized(module, tensor_name):
        raise errors.ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    if not leave_parametrized and not parts.is_tensor:
        raise errors.ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized"
            " in terms of a sequence of tensors."
        )
    if parts.is_tensor:
        kept = parts.original
        if leave_parametrized:
            with no_grad():
                kept.data = getattr(module, tensor_name).detach().clone()
    else:
        value = getattr(module, tensor_name)
        kept = value.detach().clone()
        if value.requires_grad:
            kept = _C.Parameter(kept)
    base = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    names = tuple(module.parametrizations)
    if not names:
        delattr(module, "parametrizations")
    _set_class(module, base, names)
    _register(module, tensor_name, kept)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: M, tensor_name: str | None = None
) -> M:
    """Gives to_module the parametrizations of from_module, and their originals; returns it.

    tensor_name: of that tensor alone.

    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.ReLU())
    >>> other = nn.utils.parametrize.transfer_parametrizations_and_params(layer, nn.Linear(2, 2))
    >>> kiln.equal(other.weight, layer.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    if tensor_name is not None and not is_parametrized(from_module, tensor_name):
        raise errors.AssertionError(f"{from_module} has no parametrization of {tensor_name!r}")
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, _C.Parameter(getattr(from_module, name).detach()))
        for part in source:
            register_parametrization(to_module, name, part)
        names = ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]
        for original in names:
            setattr(to_module.parametrizations[name], original, getattr(source, original))
    return to_module


