"""Structures of tuples, lists and dicts; what is none of these is a leaf."""


def leaves_of(tree):
    """The leaves, in order."""
    if isinstance(tree, dict):
        return [x for part in tree.values() for x in leaves_of(part)]
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in leaves_of(part)]
    return [tree]


def mapped(tree, function):
    """The same structure of function(leaf)."""
    if isinstance(tree, dict):
        return type(tree)((k, mapped(v, function)) for k, v in tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(v, function) for v in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(mapped(v, function) for v in tree)
    return function(tree)


def refilled(tree, leaves):
    """The same structure with other leaves, which stand in leaves_of()'s order."""
    rest = iter(leaves)
    return mapped(tree, lambda _: next(rest))
