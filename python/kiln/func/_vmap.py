"""vmap: a function for a whole batch at once. What an op does with a batch is C++'s
(kiln/backend/batched)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from .. import _C, errors
from .._compositions import drawing, finfo
from ._tree import leaves_of, mapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Generator, Tensor
    from .._typing import P, R
    from ..nn.module import Module

_MODES = ("error", "same", "different")

def _multinomial(
    input: Tensor, num_samples: int, replacement: bool, generator: Generator | None
) -> Tensor:
    """kiln.multinomial by ops that know batches, for it reads its weights."""
    weights = input.detach()
    if not replacement:
        # The first of exponential clocks whose rates are the weights: Efraimidis and Spirakis, 2006.
        uniform = _C.rand(weights.shape, dtype=weights.dtype, generator=generator)
        times = (-_C.log1p(-uniform)).clamp(min=finfo(weights.dtype).tiny)
        return (weights / times).topk(num_samples, -1)[1]
    sums = weights.cumsum(-1)
    total = sums[..., -1:]
    shape = (*weights.shape[:-1], num_samples)
    drawn = _C.rand(shape, dtype=weights.dtype, generator=generator) * total
    # Rounding must not lead behind the last weight above 0.
    last = (sums < total).sum(-1, keepdim=True)
    return _C.minimum(_C.searchsorted(sums, drawn, right=True), last)


def _broadcast(op, prefix, tree, is_dim):
    """The prefix's entry for each tensor, or other leaf, of a tree."""
    if is_dim(prefix):
        return [prefix] * len(leaves_of(tree))
    same = type(prefix) in (tuple, list) and isinstance(tree, (tuple, list)) and len(prefix) == len(tree)
    if same:
        return [d for p, t in zip(prefix, tree) for d in _broadcast(op, p, t, is_dim)]
    if isinstance(prefix, dict) and isinstance(tree, dict) and prefix.keys() == tree.keys():
        return [d for key in tree for d in _broadcast(op, prefix[key], tree[key], is_dim)]
    raise errors.ValueError(
        f"vmap: {op} is not compatible with the structure of what it is for; got {op}={prefix!r}"
    )


def _is_in_dim(x):
    return x is None or (isinstance(x, int) and not isinstance(x, bool))


def _batch(args, in_dims, name):
    """The leaves of args, the batch's dim of each or None, and its size."""
    if not isinstance(in_dims, (int, tuple, list)) or isinstance(in_dims, bool):
        raise errors.ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a"
            f" (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise errors.ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are"
            " trying to vmap over a function with no inputs."
        )
    prefix = list(in_dims) if isinstance(in_dims, (tuple, list)) else in_dims
    leaves = leaves_of(list(args))
    dims = _broadcast("in_dims", prefix, list(args), _is_in_dim)
    sizes = []
    for i, (x, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(x, _C.Tensor):
            raise errors.ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but"
                f" the input is of type {type(x)}. We cannot vmap over non-Tensor arguments, please"
                " use None as the respective in_dim"
            )
        if not -x.dim() <= dim < x.dim():
            raise errors.ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input,"
                f" but that input is a Tensor of dimensionality {x.dim()} so expected in_dim to"
                f" satisfy -{x.dim()} <= in_dim < {x.dim()}."
            )
        dims[i] = dim % x.dim()
        sizes.append(x.shape[dims[i]])
    if not sizes:
        raise errors.ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): at least one of in_dims must say"
            " where a batch is; got None for all"
        )
    if len(set(sizes)) > 1:
        raise errors.ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes"
            f" {sizes} for the mapped dimension"
        )
    return leaves, dims, sizes[0]


def _put(tree, leaves):
    leaves = iter(leaves)
    return mapped(tree, lambda _: next(leaves))


def _run(func, args, leaves, dims, size, out_dims, mode, kwargs, name):
    region = _C._VmapRegion(size, mode)
    before, drawing.multinomial = getattr(drawing, "multinomial", None), _multinomial
    try:
        inside = [x if d is None else region.enter(x, d) for x, d in zip(leaves, dims)]
        result = func(*_put(list(args), inside), **kwargs)
        found = leaves_of(result)
        for x in found:
            if not isinstance(x, _C.Tensor):
                raise errors.ValueError(
                    f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did"
                    " you mean to set `out_dims=` to None for output?"
                )
        out = region.leave(found)
    finally:
        drawing.multinomial = before
        region.end()
    places = _broadcast("out_dims", out_dims, result, _is_in_dim)
    for i, (x, dim) in enumerate(zip(out, places)):
        if dim is None:
            out[i] = x[0]
        elif dim != 0:
            if not -x.dim() <= dim < x.dim():
                raise errors.IndexError(
                    f"vmap: out_dims says {dim} for a result of {x.dim()} dims, with the batch's"
                )
            out[i] = x.movedim(0, dim)
    return _put(result, out)


def vmap(
    func: Callable[P, R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """A function that computes func for each element of a batch, in one call of func.

    in_dims: the dim of the batch for each argument, or None for one that is the same for all; one
    int for all, or a tuple of the structure of the arguments. Keywords are the same for all.
    out_dims: where results have the batch.
    func sees tensors without that dim, and may take and give tuples, lists and dicts of them.
    randomness: "error" (random ops raise), "same" or "different" for the elements. chunk_size: so
    many elements at a time, for less memory.

    >>> kiln.vmap(kiln.dot)(kiln.ones(2, 3), kiln.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in _MODES:
        raise errors.RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got"
            f" {randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise errors.ValueError(
            f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})"
        )
    name = getattr(func, "__name__", repr(func))
    mode = _MODES.index(randomness)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        leaves, dims, size = _batch(args, in_dims, name)
        if chunk_size is None or chunk_size >= size:
            return _run(func, args, leaves, dims, size, out_dims, mode, kwargs, name)
        parts = []
        for at in range(0, size, chunk_size):
            count = min(chunk_size, size - at)
            some = [x if d is None else x.narrow(d, at, count) for x, d in zip(leaves, dims)]
            parts.append(_run(func, args, some, dims, count, out_dims, mode, kwargs, name))
        places = _broadcast("out_dims", out_dims, parts[0], _is_in_dim)
        columns = zip(*(leaves_of(part) for part in parts))
        joined = [c[0] if d is None else _C.cat(list(c), d) for c, d in zip(columns, places)]
        return _put(parts[0], joined)

    return wrapped


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of several models of one class, stacked: for vmap over an ensemble.

    Dicts by name; parameters are leaves that require gradients as the models' do.

    >>> parameters, buffers = kiln.func.stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1)])
    >>> parameters["weight"].shape
    kiln.Size([2, 1, 2])
    """
    models = list(models)
    if not models:
        raise errors.RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) != 1:
        raise errors.RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in models}) != 1:
        raise errors.RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(dicts, what):
        out = {}
        for key in dicts[0]:
            values = [d[key] for d in dicts]
            if len({x.requires_grad for x in values}) != 1:
                raise errors.RuntimeError(
                    f"stack_module_state: Expected {what} {key!r} of all models to have the same"
                    " .requires_grad"
                )
            x = _C.stack([v.detach() for v in values])
            out[key] = x.requires_grad_() if values[0].requires_grad else x
        return out

    params = stacked([dict(model.named_parameters()) for model in models], "parameter")
    return params, stacked([dict(model.named_buffers()) for model in models], "buffer")
