"""Calling a module with other parameters. kiln.func.functional_call is the newer form."""

import warnings

from ... import func


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """module(*args, **kwargs) with these tensors in place of its own. Deprecated."""
    warnings.warn(
        "`nn.utils.stateless.functional_call` is deprecated; use `func.functional_call`, which does"
        " the same.",
        FutureWarning,
        stacklevel=2,
    )
    return func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
