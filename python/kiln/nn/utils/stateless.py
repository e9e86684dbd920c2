"""Calling a module with other parameters. kiln.func.functional_call is the newer form."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ... import func

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..._C import Tensor
    from ..module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with these tensors in place of its own. Deprecated.

    >>> kiln.func.functional_call(nn.Linear(1, 1), {"weight": kiln.ones(1, 1), "bias": kiln.ones(1)},
    ...                           kiln.tensor([[2.]]))
    tensor([[3.]])
    """
    warnings.warn(
        "`nn.utils.stateless.functional_call` is deprecated; use `func.functional_call`, which does"
        " the same.",
        FutureWarning,
        stacklevel=2,
    )
    return func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
