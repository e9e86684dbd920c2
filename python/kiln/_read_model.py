"""What models that were read from files share: where their weights stand in a tree of modules."""

from __future__ import annotations

from . import nn


def place(module, name, make=nn.Module):
    """The module and the key for a weight: those of its name where that makes modules."""
    *path, key = name.split(".")
    if all(part.isidentifier() or part.isdigit() for part in (*path, key)):
        at = module
        for part in path:
            inner = at._modules.get(part)
            if inner is None and not hasattr(at, part):
                inner = make()
                at.add_module(part, inner)
            at = inner
            if at is None:
                break
        if at is not None and not hasattr(at, key):
            return at, key
    key = "".join(c if c.isalnum() else "_" for c in name)
    while hasattr(module, key) or not key:
        key += "_"
    return module, key
