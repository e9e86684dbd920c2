"""Programs that torch.export.save wrote (.pt2): load reads one as a module."""

from __future__ import annotations

import os
from collections import namedtuple
from typing import TYPE_CHECKING

from . import _C, errors, nn
from ._read_model import place

if TYPE_CHECKING:
    from typing import Any

    from ._typing import StrPath


class _Part(nn.Module):
    """A module of the program, which holds weights and computes nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_type", "Module")

    def _get_name(self):
        return self._type

    def extra_repr(self) -> str:
        shapes = []
        for name, x in (*self._parameters.items(), *self._buffers.items()):
            if x is not None:
                shapes.append(f"{name}={tuple(x.shape)}")
        return ", ".join(shapes)


class Program(nn.Module):
    """A program that was read from a file: calling it computes what the exported module did.

    Parameters and buffers have the names that they had in PyTorch. Gradients flow to the
    parameters; buffers and inputs that the program writes to are written to. Whether layers train
    was fixed when the program was exported: train() and eval() change nothing in it.

    >>> isinstance(kiln.export.load("net.pt2"), kiln.export.Program)  # doctest: +SKIP
    True
    """

    def __init__(self, read: Any) -> None:
        super().__init__()
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_places", [])
        for name, kind, persistent, wants_gradient, first, value in read.held():
            if kind == "constant":
                self._places.append((None, value))
                continue
            module, key = place(self, name, _Part)
            if first < len(self._places):  # another name for a tensor that is there
                owner, its_key = self._places[first]
                value = getattr(owner, its_key)
            elif kind == "parameter":
                if value.is_floating_point() or value.is_complex():
                    value = nn.Parameter(value, requires_grad=wants_gradient)
                else:
                    value = nn.Parameter(value, requires_grad=False)
            if kind == "parameter":
                module.register_parameter(key, value)
            else:
                module.register_buffer(key, value, persistent=persistent)
            self._places.append((module, key))
        for path, type_name in read.modules():
            _name_part(self, path, type_name)

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs that are no constants, in order."""
        return [n for n, c in zip(self._read.input_names(), self._read.is_constant()) if not c]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._read.output_names())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the exported module gives, in the same tuples, lists and dicts.

        Arguments are nested as they were when the program was exported. One that was no tensor then
        has the same value, or is left out.
        """
        inputs = _Inputs(self._read).flatten(args, kwargs)
        held = [key if module is None else getattr(module, key) for module, key in self._places]
        outputs = iter(self._read.run(inputs, held))
        return _nested(self._read.output_tree(), outputs)

    def extra_repr(self) -> str:
        return _Part.extra_repr(self)


def _name_part(root, path, type_name):
    """Adds the module of this path where it holds no weights, and says of what class it was."""
    if not all(part.isidentifier() or part.isdigit() for part in path.split(".")):
        return
    at = root
    for part in path.split("."):
        inner = at._modules.get(part)
        if inner is None:
            if hasattr(at, part):
                return
            inner = _Part()
            at.add_module(part, inner)
        at = inner
    if isinstance(at, _Part):
        object.__setattr__(at, "_type", type_name)


class _Inputs:
    """Arguments of a call in the order of a program's inputs."""

    def __init__(self, read):
        self.constants = list(zip(read.is_constant(), read.constant_inputs()))
        self.names = read.argument_names()
        _, _, _, (self.args, self.kwargs) = read.input_tree()
        self.found = []

    def flatten(self, args, kwargs):
        _, _, _, trees = self.args
        _, _, keys, keyword_trees = self.kwargs
        given = dict(kwargs)
        if len(args) > len(trees):
            # As in a call of Python's: what was a keyword argument may stand by its position.
            for name, value in zip(self.names[len(trees) :], args[len(trees) :]):
                if name in given or name not in keys:
                    break
                given[name] = value
            else:
                args = args[: len(trees)] if len(args) <= len(self.names) else args
        if len(args) > len(trees):
            raise errors.TypeError(
                f"export: got {len(args)} positional arguments; expected {len(trees)}"
            )
        for i, tree in enumerate(trees):
            name = self.names[i] if i < len(self.names) else f"argument {i}"
            if i < len(args):
                self.add(tree, args[i], name)
            elif name in given:
                self.add(tree, given.pop(name), name)
            else:
                self.add_constant(tree, name)
        for key, tree in zip(keys, keyword_trees):
            if key in given:
                self.add(tree, given.pop(key), key)
            else:
                self.add_constant(tree, key)
        if given:
            raise errors.TypeError(
                f"export: unexpected keyword argument {next(iter(given))!r}; expected"
                f" {', '.join(map(str, keys)) or 'none'}"
            )
        return self.found

    def add(self, tree, value, where):
        kind, type_name, keys, items = tree
        if kind == "leaf":
            self.found.append(value)
        elif kind == "dict":
            if not isinstance(value, dict) or set(value) != set(keys):
                got = sorted(map(str, value)) if isinstance(value, dict) else type(value).__name__
                raise errors.TypeError(
                    f"export: {where} must be a dict with the keys"
                    f" {', '.join(map(str, keys))}; got {got}"
                )
            for key, item in zip(keys, items):
                self.add(item, value[key], f"{where}[{key!r}]")
        else:
            if not isinstance(value, (tuple, list)) or len(value) != len(items):
                got = len(value) if isinstance(value, (tuple, list)) else type(value).__name__
                raise errors.TypeError(
                    f"export: {where} must be a {kind} of {len(items)} items; got {got}"
                )
            for i, item in enumerate(items):
                self.add(item, value[i], f"{where}[{i}]")

    def add_constant(self, tree, where):
        """What stands for an argument that was left out: the constants of the file."""
        for _ in range(_leaves(tree)):
            is_constant, value = self.constants[len(self.found)]
            if not is_constant:
                raise errors.TypeError(f"export: the argument {where} is missing")
            self.found.append(value)


def _leaves(tree):
    kind, _, _, items = tree
    return 1 if kind == "leaf" else sum(map(_leaves, items))


def _nested(tree, leaves):
    kind, type_name, keys, items = tree
    if kind == "leaf":
        return next(leaves)
    values = [_nested(item, leaves) for item in items]
    if kind == "dict":
        return dict(zip(keys, values))
    if kind == "list":
        return values
    if keys:
        try:
            return namedtuple(type_name.rpartition(".")[2], keys)(*values)
        except ValueError:  # no names of Python's
            return tuple(values)
    return tuple(values)


def load(path: StrPath, program: str = "") -> Program:
    """The program in an archive of torch.export.save, as a module.

    No code in the file is ever executed. program: which one, where the archive holds several.
    Throws IoError for a malformed file, and NotImplementedError, which names all operators that
    Kiln lacks, or the node, for what Kiln has no form for.

    >>> net = kiln.export.load("net.pt2")  # doctest: +SKIP
    >>> net(kiln.randn(1, 4)).shape  # doctest: +SKIP
    kiln.Size([1, 2])
    """
    return Program(_C._load_pt2(os.fspath(path), program))


def operators() -> list[str]:
    """The names of the operators that load takes.

    Their forms in place ("aten.add_.Tensor") and those that copy a view ("aten.view_copy.default")
    are taken, too.

    >>> "aten.convolution.default" in kiln.export.operators()
    True
    """
    return _C._pt2_operators()
