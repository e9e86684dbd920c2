"""Gradient checkpointing: memory for time."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = [
    "balanced_checkpointing", "checkpoint", "checkpoint_sequential", "get_device_states",
    "set_device_states",
]  # fmt: skip


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), keeping its inputs only: the backward pass calls it again.

    Gradients flow to the tensors among args and to all parameters that the function uses, to any
    order. Random ops draw the same numbers again with preserve_rng_state. use_reentrant is
    PyTorch's choice between two implementations; there is one here, with the abilities of both.
    context_fn gives two context managers, one around the first call and one around the second.
    determinism_check, debug and early_stop change nothing.

    >>> from kiln.utils.checkpoint import checkpoint
    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> checkpoint(lambda x: x * x, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([2.])
    """
    places = [i for i, a in enumerate(args) if isinstance(a, _C.Tensor)]
    shape_of_result = None
    contexts = iter(() if context_fn is None else context_fn())

    def run(*tensors):
        nonlocal shape_of_result
        full = list(args)
        for i, x in zip(places, tensors):
            full[i] = x
        found = []
        with next(contexts, contextlib.nullcontext()):
            shape_of_result = _take_out(function(*full, **kwargs), found)
        return tuple(found)

    found = _C._checkpoint(run, [args[i] for i in places], preserve_rng_state)
    return _put_back(shape_of_result, iter(found))


class _Place:
    """Stands for a tensor in a structure."""


def _take_out(result, found):
    if isinstance(result, _C.Tensor):
        found.append(result)
        return _Place
    if type(result) in (tuple, list):
        return type(result)(_take_out(x, found) for x in result)
    if type(result) is dict:
        return {key: _take_out(x, found) for key, x in result.items()}
    return result


def _put_back(structure, tensors):
    if structure is _Place:
        return next(tensors)
    if type(structure) in (tuple, list):
        return type(structure)(_put_back(x, tensors) for x in structure)
    if type(structure) is dict:
        return {key: _put_back(x, tensors) for key, x in structure.items()}
    return structure


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """input through the functions in so many checkpointed segments; the last one is not. use_reentrant: as in
    checkpoint().

    >>> from kiln.utils.checkpoint import checkpoint_sequential
    >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> checkpoint_sequential(net, 2, kiln.zeros(1, 2), use_reentrant=False).shape
    kiln.Size([1, 2])
    """
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= len(functions):
        raise ValueError(
            f"checkpoint_sequential: expected 1 to {len(functions)} segments; got {segments}"
        )

    def run(begin, end):
        def part(x):
            for f in functions[begin:end]:
                x = f(x)
            return x

        return part

    length = len(functions) // segments
    last = length * (segments - 1)
    for begin in range(0, last, length):
        input = checkpoint(run(begin, begin + length), input, **kwargs)
    return run(last, len(functions))(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The devices of the tensors among args with random states of their own, and these states: none.
    The state of kiln.get_rng_state() is that of all devices.

    >>> from kiln.utils.checkpoint import get_device_states
    >>> get_device_states(kiln.ones(1))
    ([], [])
    """
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Takes what get_device_states() gave: no devices and no states. device_type: of the devices.

    >>> from kiln.utils.checkpoint import set_device_states
    >>> set_device_states([], [])
    """
    if len(states):
        raise ValueError(
            "set_device_states: devices have no random states of their own; got "
            f"{len(states)}; use kiln.set_rng_state()"
        )


@contextlib.contextmanager
def balanced_checkpointing(enabled: bool = True) -> Iterator[None]:
    """While open, this thread's graphs keep the results of products, convolutions and reductions,
    and compute those of elementwise ops again in the backward pass. Gradients stay the same bit for
    bit. Also a decorator.

    >>> from kiln.utils.checkpoint import balanced_checkpointing
    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> with balanced_checkpointing():
    ...     (x * x).sum().backward()
    >>> x.grad
    tensor([2.])
    """
    before = _C._is_balanced_checkpointing()
    _C._set_balanced_checkpointing(enabled)
    try:
        yield
    finally:
        _C._set_balanced_checkpointing(before)
