"""Burn's view of a module: parameters that wait with their values, visitors, mappers, records."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from .. import _C
from .visitor import ModuleMapper, walk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self

    from .._C import ParamId, Record, device
    from .._typing import DeviceLike, StrPath
    from .visitor import ModuleVisitor

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self

    from .._C import ModuleBase as _Base, ParamId, Record, device
    from .._typing import DeviceLike, StrPath
    from .visitor import ModuleVisitor
else:
    _Base = object  # Module itself derives from ModuleBase

Parameter = _C.Parameter


class BurnMixin(_Base):
    """The part of Module that Burn's modules have.

    _params, in a module that has any, holds the kiln.nn.Param behind a parameter: its id, its
    mappers and, while _parameters has None for it, how its value is to be made.
    """

    # ---- Parameters that wait

    def _register_param(self, name, param):
        self.register_parameter(name, None)
        self.__dict__.setdefault("_params", {})[name] = param
        if param.is_initialized:
            self._make_param(name)

    def _make_param(self, name):
        param = self._params.get(name)
        if param is None or not param.defined:
            return None
        value = _C._as_parameter(param.val())
        if not (value.is_floating_point() or value.is_complex()):
            value.requires_grad_(False)
        self._parameters[name] = value
        return value

    def _waiting(self):
        """(name, Param) of each that is not made yet."""
        for name, param in self.__dict__.get("_params", {}).items():
            if self._parameters.get(name) is None and param.defined:
                yield name, param

    def _made_parameters(self):
        """_parameters, all of them made."""
        if "_params" in self.__dict__:
            for name, _ in list(self._waiting()):
                self._make_param(name)
        return self._parameters

    def _own_params(self):
        """Parameters as they are: those that wait as their Param."""
        waiting = dict(self._waiting())
        for name, value in self._parameters.items():
            if value is None:
                value = waiting.get(name)
            if value is not None:
                yield name, value

    def materialize(self) -> Self:
        """Makes every parameter that waits, in the order of parameters()."""
        for module in self.modules():
            module._made_parameters()
        return self

    def num_params(self) -> int:
        """Elements of all parameters, each counted once. Makes none."""
        return _C._num_params(self)

    def param_id(self, path: str) -> ParamId:
        """The ParamId of a parameter, which records hold."""
        return _C._param_id(self, path)

    # ---- Visitors and mappers

    def visit(self, visitor: ModuleVisitor) -> None:
        """Shows every parameter and buffer to a ModuleVisitor, making none."""

        def own(module):
            for name, param in module._own_params():
                visitor._visit(name, param)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    visitor.visit_buffer(name, buffer)

        walk(self, visitor, own)  # type: ignore[arg-type]  # this is a Module

    def map(self, mapper: ModuleMapper) -> Self:
        """Puts what a ModuleMapper returns in the place of every parameter; ties stay."""
        made = {}

        def own(module):
            for name, param in list(module._own_params()):
                if id(param) not in made:
                    # The parameter is kept with what became of it, so that its id stays its own.
                    made[id(param)] = param, _placed(mapper._map(name, param), param)
                module._place(name, made[id(param)][1])

        walk(self, mapper, own)  # type: ignore[arg-type]
        return self

    def _place(self, name, value):
        if isinstance(value, _C.Param):
            if self.__dict__.get("_params", {}).get(name) is not value:
                self._register_param(name, value)
        elif self._parameters.get(name) is not value:
            self._parameters[name] = value

    # ---- Devices

    def collect_devices(self, devices: Iterable[device]) -> list[device]:
        """The devices of all parameters and buffers, added to a list without duplicates."""
        found: list[Any] = list(devices)
        for module in self.modules():
            own = [p.lazy_device() if isinstance(p, _C.Param) else p.device
                   for _, p in module._own_params()]  # fmt: skip
            own += [b.device for b in module._buffers.values() if b is not None]
            for device in own:
                if device not in found:
                    found.append(device)
        return found

    def devices(self) -> list[device]:
        """The devices of all parameters and buffers, without duplicates."""
        return self.collect_devices([])

    def to_device(self, device: DeviceLike) -> Self:
        """Moves every parameter by an op that is recorded: gradients flow back to the tensors from
        before. For a module that is to be trained there: fork()."""
        return self._moved(device, lambda x: x.to(device))

    def fork(self, device: DeviceLike) -> Self:
        """Moves every parameter and makes it a leaf of its own, with the same requirement."""

        def leaf(x):
            return x.detach().to(device, copy=True).requires_grad_(x.requires_grad)

        return self._moved(device, leaf)

    def _moved(self, device, fn):
        class Mover(ModuleMapper):
            def _map(self, name, param):
                return param.to_device(device) if isinstance(param, _C.Param) else fn(param)

        self.map(Mover())
        for module in self.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = buffer.detach().to(device)
        return self

    def no_grad(self) -> Self:
        """No parameter requires a gradient any more."""
        return self.requires_grad_(False)

    # ---- Without autodiff, and back

    def valid(self) -> Self:
        """A copy for inference: shares the values, requires no gradients, is in eval mode."""
        out = self._sharing_copy()
        for parameter in out.parameters():
            parameter._before_valid = getattr(parameter, "_before_valid", parameter.requires_grad)
        return out.requires_grad_(False).eval()

    def from_valid(self) -> Self:
        """The way back: each parameter requires a gradient if it did before valid()."""
        out = self._sharing_copy()
        for parameter in out.parameters():
            before = parameter.__dict__.pop("_before_valid", None)
            if before is not None:
                parameter.requires_grad_(before)
        return out.train()

    def _sharing_copy(self):
        memo = {}
        for parameter in self.materialize().parameters():
            twin = Parameter(parameter.detach(), parameter.requires_grad)
            if hasattr(parameter, "_before_valid"):
                twin._before_valid = parameter._before_valid
            memo[id(parameter)] = twin
        for buffer in self.buffers():
            memo[id(buffer)] = buffer.detach()
        return copy.deepcopy(self, memo)

    # ---- Records

    def into_record(self) -> Record:
        """A kiln.nn.Record of the state dict's entries, with the parameters' ids. Values go
        through the parameters' save mappers."""
        return _C._into_record(self)

    def load_record(self, record: Record) -> Self:
        """Takes values and ids over, through the load mappers; a parameter that waits takes its
        value without being made first. As strict as load_state_dict; an error changes nothing."""
        _C._load_record(self, record)
        return self

    def save_file(self, path: StrPath, recorder: Any) -> None:
        """Writes the module's record with a recorder of kiln.record, which adds its extension."""
        recorder.record(self.into_record(), path)

    def load_file(self, path: StrPath, recorder: Any, device: DeviceLike | None = None) -> Self:
        """Reads what save_file wrote; then moves the module to `device`, if there is one."""
        self.load_record(recorder.load(path))
        return self if device is None else self.to(device)


def _placed(value, param):
    """What a mapper returned, as a module holds it."""
    if value is param or isinstance(value, (_C.Param, Parameter)):
        return value
    if not isinstance(value, _C.Tensor):
        raise TypeError(
            f"map: a mapper returns a tensor or a kiln.nn.Param; got {type(value).__name__}"
        )
    return _C._as_parameter(value)
