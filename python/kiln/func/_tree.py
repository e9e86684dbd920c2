"""Structures of tuples, lists, dicts and the types of nodes(); what is none of these is a leaf."""

import collections


# Types that utils._pytree registers -> (flatten: node -> (parts, context), unflatten: its inverse).
nodes: dict = {}


def _dict_of(kind, factory=None):
    if factory is not None:
        return lambda parts, keys: kind(factory, zip(keys, parts))
    return lambda parts, keys: kind(zip(keys, parts))


def opened(tree):
    """(parts, context, make) of a structure, so that make(parts, context) is one like it; None for a
    leaf."""
    kind = type(tree)
    if kind in nodes:
        flatten, unflatten = nodes[kind]
        parts, context = flatten(tree)
        return list(parts), context, unflatten
    if isinstance(tree, dict):
        factory = getattr(tree, "default_factory", None)
        return list(tree.values()), list(tree), _dict_of(kind, factory)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(tree), kind, lambda parts, kind: kind(*parts)
    if isinstance(tree, (tuple, list)):
        return list(tree), None, lambda parts, _: kind(parts)
    if kind is collections.deque:
        return list(tree), tree.maxlen, collections.deque
    return None


def leaves_of(tree, is_leaf=None):
    """The leaves, in order. is_leaf: what else is one."""
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    found = opened(tree)
    if found is None:
        return [tree]
    return [leaf for part in found[0] for leaf in leaves_of(part, is_leaf)]


def mapped(tree, function, is_leaf=None):
    """The same structure of function(leaf). is_leaf: what else is a leaf."""
    found = None if is_leaf is not None and is_leaf(tree) else opened(tree)
    if found is None:
        return function(tree)
    parts, context, make = found
    return make([mapped(part, function, is_leaf) for part in parts], context)


def refilled(tree, leaves):
    """The same structure with other leaves, which stand in leaves_of()'s order."""
    rest = iter(leaves)
    return mapped(tree, lambda _: next(rest))
