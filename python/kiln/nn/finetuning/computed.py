"""Layers whose weight is computed from other tensors at each use.

A weight "weight" has up to two parts, children of the layer: weight_quantized, which takes the
parameter's place, and weight_lora, which adds an update. The layer gets a class of its own, derived
from its class, with a property in the parameter's place; Linear layers use the parts directly.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from typing import TYPE_CHECKING

from ... import errors
from .. import functional as F
from .. import layers
from ..lazy import is_lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ..._typing import Targets
    from ..module import Module

_instead = threading.local()  # {(id of a layer, name): the tensor that its forward sees}


def part(module: Module, name: str, kind: str) -> Any:
    """module.<name>_<kind>, or None."""
    return module._modules.get(f"{name}_{kind}")


def base_value(module: Module, name: str) -> Any:
    """The weight without its update, as an ordinary tensor."""
    quantized = part(module, name, "quantized")
    return module._parameters[name] if quantized is None else quantized.dequantized()


def value(module: Module, name: str) -> Any:
    """The weight with its update."""
    base, update = base_value(module, name), part(module, name, "lora")
    return base if update is None or update.is_merged() else base + update.delta()


def _property(name):
    def get(self):
        given = getattr(_instead, "values", {}).get((id(self), name))
        return value(self, name) if given is None else given

    return property(get, doc="Computed from the parts beside it.")


def _setattr(self, name, new):
    if name in self._computed:
        raise errors.ValueError(
            f"{type(self).__name__}.{name} is computed and cannot be assigned; try unload() or "
            "dequantize_() first"
        )
    super(type(self), self).__setattr__(name, new)


def _linear_forward(self, input):
    quantized, update = part(self, "weight", "quantized"), part(self, "weight", "lora")
    weight = self._parameters["weight"] if quantized is None else quantized.tensor()
    out = F.linear(input, weight, self.bias)
    if update is None or update.is_merged():
        return out
    return out + update(input)


def _forward_with(module, name, weight, input):
    if not hasattr(_instead, "values"):
        _instead.values = {}
    _instead.values[id(module), name] = weight
    try:
        return super(type(module), module).forward(input)
    finally:
        del _instead.values[id(module), name]


def _convolution_forward(self, input):
    update = part(self, "weight", "lora")
    if update is None or update.is_merged() or not (self.training and update.dropout):
        return super(type(self), self).forward(input)
    dropped = F.dropout(input, update.dropout, True)
    out = _forward_with(self, "weight", base_value(self, "weight"), input)
    change = _forward_with(self, "weight", update.delta(), dropped)
    if self.bias is not None:  # it is in both
        change = change - self.bias.reshape(-1, *(1,) * len(self.kernel_size))
    return out + change


_classes: dict[Any, type] = {}
_CONVOLUTIONS = (layers.Conv1d, layers.Conv2d, layers.Conv3d)


def _reduce(self, protocol):
    function, (own, *arguments), *rest = super(type(self), self).__reduce_ex__(protocol)
    return (_rebuilt, (function, own.__bases__[0], own._computed, *arguments), *rest)


def _rebuilt(function, base, names, *arguments):
    return function(_class_with(base, names), *arguments)


def _class_with(base, names):
    key = (base, names)
    if key not in _classes:
        body = {name: _property(name) for name in names}
        body |= {"_computed": names, "__module__": base.__module__}
        body |= {"__reduce_ex__": _reduce, "__setattr__": _setattr}
        if names == ("weight",):
            if base.forward == layers.Linear.forward:
                body["forward"] = _linear_forward
            elif any(base.forward == kind.forward for kind in _CONVOLUTIONS):
                body["forward"] = _convolution_forward
        _classes[key] = type(base)(base.__name__, (base,), body)
    return _classes[key]


def computed_names(module: Module) -> tuple[str, ...]:
    """The names of the computed weights of a layer."""
    return getattr(type(module), "_computed", ())


def set_computed(module: Module, names: Iterable[str]) -> None:
    """Gives the module the class for these names, sorted: its own where there are none."""
    base = type(module).__bases__[0] if computed_names(module) else type(module)
    module.__class__ = _class_with(base, tuple(sorted(names))) if names else base


# ---- Which weights are meant


def _matcher(targets, op):
    """A function of a path for one glob, several, or a function: True where any matches."""
    if callable(targets):
        return targets
    globs = [targets] if isinstance(targets, str) else list(targets)
    for glob in globs:
        if not isinstance(glob, str):
            raise TypeError(f"{op}: expected patterns of paths; got {type(glob).__name__}")
    # '*' and '?' alone are special, as in C++: brackets stand for themselves.
    tests = [re.compile(fnmatch.translate(glob.replace("[", "[[]"))) for glob in globs]
    return lambda path: any(test.match(path) for test in tests)


def layers_with_weights(module: Module) -> Iterator[tuple[str, Module, str]]:
    """(path, layer, name) of every weight, computed ones too; a layer that is met twice once."""
    for path, layer in module.named_modules():
        names = [*layer._parameters, *computed_names(layer)]
        for name in dict.fromkeys(names):
            if layer._parameters.get(name) is not None or name in computed_names(layer):
                yield f"{path}.{name}" if path else name, layer, name


def targets_of(
    module: Module, targets: Targets | None, op: str, convolutions: bool
) -> list[tuple[str, Module, str]]:
    """The weights that are meant: without `targets` those of Linear layers (and, with
    `convolutions`, of convolutions); else those of two dims or more whose path, or whose layer's
    path, matches. ValueError where there are none."""
    kinds = (layers.Linear, *(_CONVOLUTIONS if convolutions else ()))
    matches = None if targets is None else _matcher(targets, op)
    found = []
    for path, layer, name in layers_with_weights(module):
        if path.rpartition(".")[0].endswith(("_lora", "_quantized")):
            continue
        if matches is None:
            meant = isinstance(layer, kinds) and name == "weight"
        else:
            meant = matches(path) or matches(path.rpartition(".")[0])
        if meant and shape_of(layer, name, op, path) is not None:
            found.append((path, layer, name))
    if not found:
        raise errors.ValueError(
            f"{op}: no weight of {type(module).__name__} matches {targets!r}; expected patterns of "
            "the paths of weights of two dims or more, or of their layers"
        )
    return found


def shape_of(layer: Module, name: str, op: str, path: str) -> tuple[int, ...] | None:
    """The shape of a weight, None below two dims. ValueError for a lazy one."""
    quantized = part(layer, name, "quantized")
    if quantized is not None:
        return quantized.shape
    weight = layer._parameters[name]
    if is_lazy(weight):
        raise errors.ValueError(f"{op}: {path} has no shape yet; call the model once before")
    return tuple(weight.shape) if weight.dim() > 1 else None
