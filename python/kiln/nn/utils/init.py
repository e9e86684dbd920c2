"""Layers without initial values."""

import inspect

from ... import errors
from ..module import Module


def skip_init(module_cls, *args, **kwargs):
    """A module whose parameters hold whatever their memory held: for those who fill them anyway."""
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise errors.RuntimeError(f"skip_init: Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise errors.RuntimeError(
            "skip_init: Module must support a 'device' arg to skip initialization"
        )
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
