"""Calling a module with other parameters."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .._C import Tensor
    from ..nn.module import Module


@contextlib.contextmanager
def _swapped(module, values):
    """The module with tensors in place of its parameters and buffers, by name."""
    modules = dict(module.named_modules(remove_duplicate=False))
    shown = []
    try:
        for name, value in values.items():
            path, _, short = name.rpartition(".")
            part = modules.get(path)
            if part is None or short not in (*part._parameters, *part._buffers):
                raise AttributeError(f"functional_call: the module has no parameter or buffer {name!r}")
            # What the instance itself holds is found before parameters are looked for.
            part.__dict__[short] = value
            shown.append((part, short))
        yield
    finally:
        for part, short in shown:
            part.__dict__.pop(short, None)


def _with_ties(module, values):
    """The values, also under the other names of tensors that have several."""
    names = {}
    for kind in (module.named_parameters, module.named_buffers):
        for name, x in kind(remove_duplicate=False):
            names.setdefault(id(x), []).append(name)
    out = dict(values)
    for tied in names.values():
        given = [values[name] for name in tied if name in values]
        if len(tied) < 2 or not given:
            continue
        if any(x is not given[0] for x in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied; try"
                " tie_weights=False"
            )
        out.update((name, given[0]) for name in tied)
    return out


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with the tensors of a dict, or of several, in place of its own.

    Gradients flow to the tensors that are given. tie_weights: a tensor that the module has under
    several names is replaced under all of them. strict: every parameter and buffer must be given.

    >>> net = nn.Linear(2, 1)
    >>> tensors = {"weight": kiln.ones(1, 2), "bias": kiln.zeros(1)}
    >>> kiln.func.functional_call(net, tensors, kiln.tensor([[1., 2.]]))
    tensor([[3.]])
    """
    given: Any = parameter_and_buffer_dicts
    values: dict[str, Tensor] = {}
    for part in [given] if isinstance(given, dict) else given:
        if repeated := values.keys() & part.keys():
            raise ValueError(f"functional_call: given twice: {sorted(repeated)}")
        values |= part
    if tie_weights:
        values = _with_ties(module, values)
    if strict:
        names = {n for n, _ in [*module.named_parameters(), *module.named_buffers()]}
        if missing := names - values.keys():
            raise RuntimeError(f"functional_call: missing {sorted(missing)}")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _swapped(module, values):
        return module(*args, **(kwargs or {}))


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Changes the batch norms within root so that they keep no running statistics; returns root.

    root: a module. Its batch norms then always use the statistics of the batch, and vmap over the
    module writes to no buffers.

    >>> net = nn.Sequential(nn.BatchNorm1d(2))
    >>> kiln.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    from ..nn import layers

    kinds = (layers.BatchNorm1d, layers.BatchNorm2d, layers.BatchNorm3d)  # type: ignore[attr-defined]
    for module in root.modules():
        if isinstance(module, kinds) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
