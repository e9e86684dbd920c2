"""Structures of tuples, lists and dicts, as programs that use PyTorch's torch.utils._pytree do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..func._tree import leaves_of, mapped, refilled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten",
]  # fmt: skip


class TreeSpec:
    """A structure without its leaves."""

    def __init__(self, tree: Any) -> None:
        self._tree = mapped(tree, lambda _: None)
        self.num_leaves = len(leaves_of(self._tree))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The structure with these leaves."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._tree == other._tree

    def __hash__(self) -> int:
        return hash(repr(self._tree))

    def __repr__(self) -> str:
        return f"TreeSpec({mapped(self._tree, lambda _: '*')!r})"


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure."""
    return leaves_of(tree), TreeSpec(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The structure with these leaves; ValueError unless there are as many as it has."""
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: expected {treespec.num_leaves} leaves; got {len(given)}"
        )
    return refilled(treespec._tree, given)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves in order."""
    return leaves_of(tree)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """The same structure of func(leaf, ...), with the leaves of the others that stand there."""
    others = [iter(leaves_of(rest)) for rest in rests]
    return mapped(tree, lambda leaf: func(leaf, *(next(other) for other in others)))


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure of func(leaf) for the leaves of one class (or of several)."""
    return mapped(tree, lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf)
