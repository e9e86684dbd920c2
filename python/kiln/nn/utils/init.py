"""Layers without initial values."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from ... import errors
from ..module import Module

if TYPE_CHECKING:
    from typing import Any

    from ..._typing import M


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """A module whose parameters hold whatever their memory held: for those who fill them anyway.

    >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
    kiln.Size([2, 3])
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise errors.RuntimeError(f"skip_init: Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise errors.RuntimeError(
            "skip_init: Module must support a 'device' arg to skip initialization"
        )
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
