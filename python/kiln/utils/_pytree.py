"""Structures of tuples, lists, dicts and registered types, as programs that use PyTorch's
torch.utils._pytree do."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any

from ..func import _tree
from ..func._tree import leaves_of, mapped, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
    Unflatten = Callable[[Iterable[Any], Any], Any]

PyTree = Any
Context = Any

__all__ = [
    "Context", "GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec", "keystr",
    "register_dataclass", "register_pytree_node", "tree_all", "tree_any", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path",
    "tree_map", "tree_map_", "tree_map_only", "tree_map_with_path", "tree_structure",
    "tree_unflatten",
]  # fmt: skip

SUPPORTED_NODES = _tree.nodes  # what register_pytree_node has added

# Types -> flatten_with_keys_fn: node -> ([(key, part), ...], context).
_with_keys: dict[type, Callable[[Any], tuple[list[tuple[Any, Any]], Any]]] = {}


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The place of a part in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of a part of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of a part of a named tuple or dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


def keystr(kp: Iterable[Any]) -> str:
    """The path of a leaf as text."""
    return "".join(str(key) for key in kp)


class TreeSpec:
    """A structure without its leaves: its type (None of a leaf), context and the specs within."""

    def __init__(
        self, type: Any, context: Any, children_specs: list[TreeSpec], make: Any = None
    ) -> None:
        self.type, self.context, self._children = type, context, list(children_specs)
        if make is None and type in _tree.nodes:
            make = _tree.nodes[type][1]
        self._make = make
        inner = self._children
        self.num_children: int = len(inner)
        self.num_leaves: int = 1 if type is None else sum(child.num_leaves for child in inner)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in inner)

    def children(self) -> list[TreeSpec]:
        """The specs of the parts."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The spec of one part."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this is the spec of a leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The structure with these leaves."""
        return tree_unflatten(leaves, self)

    def _filled(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        return self._make([child._filled(leaves) for child in self._children], self.context)

    def _key(self) -> Any:
        return self.type, self.context, self._children

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), tuple(self._children)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        inner = ", ".join(map(repr, self._children))
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


def register_pytree_node(
    cls: type,
    flatten_fn: Flatten,
    unflatten_fn: Unflatten,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Makes objects of the class cls structures, for the functions here and for kiln.func's.

    flatten_fn: object -> (parts, context). unflatten_fn(parts, context): the object.
    flatten_with_keys_fn: object -> (pairs of keys and parts, context), for the functions with paths.
    The others are for files of exported programs, which are not made here. ValueError for a class
    that is registered already.
    """
    if cls in _tree.nodes or cls in (dict, list, tuple):
        raise ValueError(f"{cls} is already registered as pytree node.")
    _tree.nodes[cls] = (flatten_fn, unflatten_fn)
    if flatten_with_keys_fn is not None:
        _with_keys[cls] = flatten_with_keys_fn


def _register_pytree_node(cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **options: Any) -> None:
    """register_pytree_node() under its older name."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type) -> None:
    """Takes register_pytree_node() back."""
    _tree.nodes.pop(cls, None)
    _with_keys.pop(cls, None)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """register_pytree_node() for a dataclass, whose parts are its fields.

    field_names: only these, which the constructor must take. drop_field_names: all but these.
    """
    given = [f.name for f in dataclasses.fields(cls) if f.init] if field_names is None else field_names
    dropped = drop_field_names or []
    names = [name for name in given if name not in dropped]
    register_pytree_node(
        cls,
        lambda value: ([getattr(value, name) for name in names], names),
        lambda parts, context: cls(**dict(zip(context, parts))),
        flatten_with_keys_fn=lambda value: (
            [(GetAttrKey(name), getattr(value, name)) for name in names],
            names,
        ),
    )


# What programs hand to register_pytree_node for a class that derives from dict.


def _dict_flatten(d: Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Mapping[Any, Any]) -> tuple[list[tuple[Any, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(context, values))


def _ordereddict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    return collections.OrderedDict(zip(context, values))


_ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys


def _keyed(tree: Any, parts: list[Any]) -> list[tuple[Any, Any]]:
    """The parts of an opened structure, with their keys."""
    kind = type(tree)
    if kind in _with_keys:
        return list(_with_keys[kind](tree)[0])
    if kind in _tree.nodes:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn "
            "argument to register_pytree_node."
        )
    if isinstance(tree, dict):
        return [(MappingKey(key), part) for key, part in zip(tree, parts)]
    if hasattr(tree, "_fields"):
        return [(GetAttrKey(name), part) for name, part in zip(tree._fields, parts)]
    return [(SequenceKey(i), part) for i, part in enumerate(parts)]


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[tuple[Any, ...], Any]]:
    """(path, leaf) for the leaves in order; a path is a tuple of keys."""
    found = None if is_leaf is not None and is_leaf(tree) else opened(tree)
    if found is None:
        return [((), tree)]
    return [
        ((key, *path), leaf)
        for key, part in _keyed(tree, found[0])
        for path, leaf in tree_leaves_with_path(part, is_leaf)
    ]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """tree_leaves_with_path(), and the structure."""
    return tree_leaves_with_path(tree, is_leaf), _spec_of(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The same structure of func(path, leaf, ...), as tree_map() calls it."""
    paths = iter([path for path, _ in tree_leaves_with_path(tree, is_leaf)])
    return tree_map(lambda *leaves: func(next(paths), *leaves), tree, *rests, is_leaf=is_leaf)


def _spec_of(tree: Any, is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    found = None if is_leaf is not None and is_leaf(tree) else opened(tree)
    if found is None:
        return LeafSpec()
    parts, context, make = found
    return TreeSpec(type(tree), context, [_spec_of(part, is_leaf) for part in parts], make)


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure. is_leaf: what else is a leaf, here and below."""
    return leaves_of(tree, is_leaf), _spec_of(tree, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The structure with these leaves; ValueError unless there are as many as it has."""
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: expected {treespec.num_leaves} leaves; got {len(given)}"
        )
    return treespec._filled(iter(given))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure without its leaves."""
    return _spec_of(tree, is_leaf)


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether it has no parts."""
    return (is_leaf is not None and is_leaf(tree)) or opened(tree) is None


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves in order."""
    return leaves_of(tree, is_leaf)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves in order, one by one."""
    return iter(leaves_of(tree, is_leaf))


def tree_map(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The same structure of func(leaf, ...), with the leaves of the others that stand there."""
    others = [iter(leaves_of(rest, is_leaf)) for rest in rests]
    return mapped(tree, lambda leaf: func(leaf, *(next(other) for other in others)), is_leaf)


def tree_map_(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func(leaf, ...) as tree_map() does, and gives the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The same structure of func(leaf) for the leaves of one class, of several, or that a function
    is true for."""
    kinds = type_or_types_or_pred
    chosen = (
        (lambda leaf: isinstance(leaf, kinds))
        if isinstance(kinds, (type, tuple)) or not callable(kinds)
        else kinds
    )
    return mapped(tree, lambda leaf: func(leaf) if chosen(leaf) else leaf, is_leaf)


def tree_all(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether pred is true of every leaf."""
    return all(pred(leaf) for leaf in leaves_of(tree, is_leaf))


def tree_any(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether pred is true of a leaf."""
    return any(pred(leaf) for leaf in leaves_of(tree, is_leaf))
