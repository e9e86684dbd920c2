"""Parameters that are computed before each forward, by a hook on the module."""

from ... import errors


def hooks_of(module):
    """A module's forward pre-hooks by key; the dict is made with the first of them."""
    return module.__dict__.get("_forward_pre_hooks", {})


def find(module, kind, name, attribute="name"):
    """The key and the hook of that class for a parameter, or (None, None)."""
    for key, hook in hooks_of(module).items():
        if isinstance(hook, kind) and getattr(hook, attribute) == name:
            return key, hook
    return None, None


def drop(module, key):
    """Removes a forward pre-hook by its key."""
    del module._forward_pre_hooks[key]
    module.__dict__.get("_forward_pre_hooks_options", {}).pop(key, None)


def check_made(op, weight, name, module):
    """Raises ValueError for a parameter that is not there, or has no shape yet."""
    from ..lazy import UninitializedParameter

    if weight is None:
        raise errors.ValueError(f"{op}: it cannot be applied as parameter `{name}` is None")
    if isinstance(weight, UninitializedParameter):
        raise errors.ValueError(
            f"{op}: {type(module).__name__} has uninitialized parameters; run a forward pass first"
        )


def norm_except(v, dim):
    """The 2-norms of v over all dims but one, which stay with size 1; over all dims for -1."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(2, others, keepdim=True) if others else v.abs()


def weight_of(v, g, dim):
    """v in its direction, with the norms g."""
    return v * (g / norm_except(v, dim))

