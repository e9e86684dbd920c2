"""Walking over a module's tree: parameters, buffers and modules by name, and by path."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from .._C import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from .._C import Tensor
    from .module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from .._C import ModuleBase as _Base, Tensor
    from .module import Module
else:
    _Base = object  # Module itself derives from ModuleBase


class TreeMixin(_Base):
    """The part of Module that finds things."""

    # ---- Iteration

    def _named_members(self, get_members, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in get_members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield path + ("." if path else "") + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their paths; one that occurs twice comes once."""
        yield from self._named_members(
            lambda module: module._made_parameters().items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters: what an optimizer takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their paths."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The immediate parts with their names; one that occurs twice comes once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The immediate parts."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their paths. memo: modules already seen."""
        if memo is None:
            memo = set()
        me = cast("Module", self)
        if me in memo:
            return
        if remove_duplicate:
            memo.add(me)
        yield prefix, me
        for name, module in self._modules.items():
            if module is None:
                continue
            path = prefix + ("." if prefix else "") + name
            yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it; one that occurs twice comes once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """fn(module) for every module below this one, children first, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(cast("Module", self))
        return self

    # ---- By path

    def _step(self, name):
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        part = getattr(self, name)
        if not isinstance(part, TreeMixin):
            raise AttributeError(f"`{name}` is not an nn.Module")
        return part

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "layers.0.fc"; the empty path is this module."""
        module = cast("Module", self)
        for name in target.split(".") if target else ():
            module = module._step(name)
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place of another, or (unless strict) in a new one.

        ValueError for an empty path or something that is no module; AttributeError when the path
        leads nowhere, or to something that is no module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path = target.split(".")
        if not isinstance(module, TreeMixin):
            raise ValueError(
                f"`module` is not an nn.Module, found {type(module)} for submodule {target}"
            )
        parent = self.get_submodule(".".join(path[:-1]))
        name = path[-1]
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), TreeMixin):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _owner(self, target):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "layers.0.weight"."""
        module, name = self._owner(target)
        value = getattr(module, name)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "bn.running_mean"."""
        module, name = self._owner(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    # ---- State of training

    def train(self, mode: bool = True) -> Self:
        """Sets training mode on this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """The same as train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters want gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the parameters' gradients, or fills them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach().zero_()
