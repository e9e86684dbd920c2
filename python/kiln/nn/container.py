"""Containers of modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .module import Module

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
    from typing import Any, Self

# Modules in a repeated Sequential: what comes from a wrong number would fill memory.
MOST_REPEATED = 100_000


def _position(index, size):
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


class Sequential(Module):
    """Modules that feed one another: Sequential(a, b), or Sequential(OrderedDict(...)).

    >>> nn.Sequential(nn.Flatten(), nn.ReLU())(kiln.tensor([[[-1.], [2.]]]))
    tensor([[0., 2.]])
    """

    def __init__(self, *args: Module | OrderedDict[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, part in enumerate(args):
                self.add_module(str(i), part)  # type: ignore[arg-type]

    def _key(self, index):
        return list(self._modules)[_position(index, len(self))]

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber(self._modules.values())

    def _renumber(self, modules):
        modules = list(modules)
        self._modules.clear()
        self._modules.update((str(i), module) for i, module in enumerate(modules))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        if not isinstance(other, Sequential):
            return NotImplemented
        return self.extend(other)

    def _check_factor(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        if len(self) * times > MOST_REPEATED:
            raise ValueError(
                f"Sequential: {len(self)} modules {times} times are too many; expected at most {MOST_REPEATED} in all"
            )

    def __mul__(self, times: int) -> Sequential:
        # The same modules again, as in PyTorch: their weights are shared.
        self._check_factor(times)
        return Sequential(*(list(self) * times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        self._check_factor(times)
        return self.extend(list(self) * (times - 1))

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Adds a module before a position."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index if index >= 0 else index + n, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Adds the modules of another at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def pop(self, key: int) -> Module:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(Module):
    """A list of modules whose parameters belong to the list's owner.

    >>> layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
    >>> len(layers), len(list(layers.parameters()))
    (2, 2)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(_position(index, len(self)))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(_position(index, len(self))), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index]
        self._replace(modules)

    def _replace(self, modules):
        self._modules.clear()
        self._modules.update((str(i), module) for i, module in enumerate(modules))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __contains__(self, module: object) -> bool:
        return any(module is one for one in self)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Adds a module before a position."""
        modules = list(self)
        modules.insert(index, module)
        self._replace(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        try:
            items = list(modules)
        except TypeError:
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            ) from None
        for module in items:
            self.append(module)
        return self

    def pop(self, key: int) -> Module:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module

    def __repr__(self) -> str:
        # Equal neighbours as one line: (0-3): 4 x Linear(...)
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        runs: list[Any] = []
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            many = f"({first}-{last}): {last - first + 1} x " if last > first else f"({first}): "
            lines.append((many + text).replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    __hash__ = Module.__hash__


class ModuleDict(Module):
    """Modules by name.

    >>> parts = nn.ModuleDict({"a": nn.ReLU()})
    >>> parts["a"](kiln.tensor([-1.]))
    tensor([0.])
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """(name, module) pairs."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules from a mapping or from pairs."""
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        try:
            pairs = [tuple(pair) for pair in pairs]
        except TypeError:
            raise TypeError(
                "ModuleDict.update should be called with a mapping or an iterable of key/value "
                f"pairs, but got {type(modules).__name__}"
            ) from None
        for i, pair in enumerate(pairs):
            if len(pair) != 2:
                raise ValueError(
                    f"ModuleDict update sequence element #{i} has length {len(pair)}; 2 is required"
                )
            self[pair[0]] = pair[1]
