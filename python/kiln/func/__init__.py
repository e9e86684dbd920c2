"""Functions of functions, under the names of torch.func: derivatives that nest.

    grad(grad(lambda x: x**3))(kiln.tensor(2.0))  # 12

Arguments that are differentiated, and results, may be tensors or tuples, lists and dicts of them.
Results are recorded where an argument requires a gradient or inside another of these functions; a
tensor that a function captured counts only there.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from .. import _C
from ..autograd import functional as _functional
from ..autograd.grad_mode import enable_grad
from ._state import functional_call, replace_all_batch_norm_modules_
from ._tree import leaves_of as _leaves_of, mapped as _all_mapped, refilled as _refilled
from ._vmap import stack_module_state, vmap

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._typing import P

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

_depth = threading.local()


@contextlib.contextmanager
def _inside():
    _depth.count = getattr(_depth, "count", 0) + 1
    try:
        with enable_grad():
            yield
    finally:
        _depth.count -= 1


def _leaves(tree):
    """The tensors among the leaves."""
    return [x for x in _leaves_of(tree) if isinstance(x, _C.Tensor)]


def _mapped(tree, function):
    """The same structure of function(tensor); other leaves stay."""
    return _all_mapped(tree, lambda x: function(x) if isinstance(x, _C.Tensor) else x)


def _recorded(tensors):
    """Whether somebody may differentiate what is computed from these."""
    if getattr(_depth, "count", 0) > 0:
        return True
    return _C.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _own(x):
    """x as a variable of its own, which keeps what x was computed from."""
    if x.requires_grad:
        return x.view(x.shape) if x.is_contiguous() else x.clone()
    return x.detach().requires_grad_()


def _plain(tree, recorded):
    return tree if recorded else _mapped(tree, lambda x: x.detach())


def _numbers(op, argnums):
    one = isinstance(argnums, int)
    numbers = (argnums,) if one else tuple(argnums)
    if not numbers or not all(isinstance(i, int) for i in numbers):
        raise ValueError(f"{op}: expected argnums an int or a tuple of ints; got {argnums!r}")
    return numbers, one


def _chosen(op, numbers, args):
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"{op}: got argnums {i}, and {len(args)} positional arguments")
    return tuple(args[i] for i in numbers)


def _replaced(args, numbers, values):
    out = list(args)
    for i, value in zip(numbers, values):
        out[i] = value
    return out


def _with_aux(op, result, has_aux):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{op}: with has_aux a function must give a tuple (output, aux)")
    return result


def grad_and_value(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """A function that gives (the gradients of func, what func gives): func gives one number.

    argnums, has_aux: as in grad().

    >>> kiln.func.grad_and_value(lambda x: x**3)(kiln.tensor(2.))
    (tensor(12.), tensor(8.))
    """
    numbers, one = _numbers("grad", argnums)

    def wrapped(*args, **kwargs):
        chosen = _chosen("grad", numbers, args)
        recorded = _recorded(_leaves(chosen))
        with _inside():
            own = _mapped(chosen, _own)
            result = func(*_replaced(args, numbers, own), **kwargs)
            value, aux = _with_aux("grad", result, has_aux)
            if not isinstance(value, _C.Tensor) or value.dim() != 0:
                got = list(value.shape) if isinstance(value, _C.Tensor) else type(value).__name__
                raise RuntimeError(f"grad: expected a function that gives a 0-d tensor; got {got}")
            found = iter(_gradients([value], _leaves(own), None, recorded))
            grads = _mapped(own, lambda _: next(found))
        grads = grads[0] if one else grads
        value = _plain((value, aux), recorded)
        return _plain(grads, recorded), (value if has_aux else value[0])

    return wrapped


def _gradients(outputs, inputs, cotangents, recorded):
    """Of outputs that may not depend on anything: zeros there."""
    pairs = [(y, v) for y, v in zip(outputs, cotangents or [None] * len(outputs)) if y.requires_grad]
    if not pairs:
        return [_C.zeros_like(x) for x in inputs]
    ys, vs = zip(*pairs)
    given = () if cotangents is None else tuple(vs)
    grads = _C.grad(tuple(ys), tuple(inputs), given, True, recorded, True)
    return [_C.zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]


def grad(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """A function that gives the gradients of func, and with has_aux what else func gives.

    argnums: by which argument, or a tuple of several. has_aux: func gives (number, something else).

    >>> kiln.func.grad(lambda x: x**3)(kiln.tensor(2.))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    def wrapped(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapped


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), a function from cotangents like it to the tuple of those of the primals).

    With has_aux the third result is aux.

    >>> value, pullback = kiln.func.vjp(lambda x: x * x, kiln.tensor([1., 2.]))
    >>> pullback(kiln.tensor([1., 1.]))
    (tensor([2., 4.]),)
    """
    recorded = _recorded(_leaves(primals))
    with _inside():
        own = _mapped(primals, _own)
        output, aux = _with_aux("vjp", func(*own), has_aux)

    def pullback(cotangents, retain_graph=True, create_graph=None):
        outputs, given = _leaves(output), _leaves(cotangents)
        if [x.shape for x in outputs] != [x.shape for x in given]:
            raise RuntimeError(
                f"vjp: expected cotangents of shapes {[list(x.shape) for x in outputs]}; got "
                f"{[list(x.shape) for x in given]}"
            )
        record = recorded or _recorded(given) if create_graph is None else create_graph
        with enable_grad():
            found = iter(_gradients(outputs, _leaves(own), given, record))
        result = _mapped(own, lambda _: next(found))
        return result

    value = _plain(output, recorded)
    return (value, pullback, _plain(aux, recorded)) if has_aux else (value, pullback)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """(func(*primals), its derivative along the tangents); primals and tangents are tuples.

    has_aux: func gives (output, something else), which is the third result. strict: an input that the
    output does not depend on is an error.

    >>> kiln.func.jvp(lambda x: x * x, (kiln.tensor([1., 2.]),), (kiln.tensor([1., 0.]),))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    aux = None

    def own(*inputs):
        nonlocal aux
        result, aux = _with_aux("jvp", func(*inputs), has_aux)
        return result

    primals = tuple(primals)
    points, along, output = _leaves_of(primals), _leaves_of(tuple(tangents)), None

    def flat(*leaves):
        nonlocal output
        output = own(*_refilled(primals, leaves))
        return tuple(_leaves_of(output))

    recorded = _recorded([*points, *along])
    with _inside():
        found = _functional.jvp(flat, tuple(points), tuple(along), recorded, strict)
        value, derivative = (_refilled(output, part) for part in found)
    return (value, derivative, _plain(aux, recorded)) if has_aux else (value, derivative)


def _jacobian(op, func, argnums, has_aux, strategy):
    numbers, one = _numbers(op, argnums)

    def wrapped(*args, **kwargs):
        chosen = _chosen(op, numbers, args)
        recorded = _recorded(_leaves(chosen))
        aux = None

        def own(*inputs):
            nonlocal aux
            result, aux = _with_aux(op, func(*_replaced(args, numbers, inputs), **kwargs), has_aux)
            return result

        with _inside():
            # Columns are not recorded; rows have the same values.
            way = "reverse-mode" if recorded else strategy
            inputs, output = _leaves_of(chosen), None

            def flat(*leaves):
                nonlocal output
                output = own(*_refilled(chosen, leaves))
                return tuple(_leaves_of(output))

            rows = _functional.jacobian(flat, tuple(inputs), recorded, strategy=way)
            # For each leaf of the output the structure of the inputs.
            parts = [
                _refilled(chosen[0] if one else chosen, [x.contiguous() for x in row])
                for row in rows
            ]
            result = _refilled(output, parts)
        return (result, _plain(aux, recorded)) if has_aux else result

    return wrapped


def jacrev(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """A function that gives the Jacobian of func, row by row: [*output.shape, *input.shape].

    argnums: by which argument, or a tuple of several. has_aux: func gives (output, something else).
    chunk_size changes nothing.

    >>> kiln.func.jacrev(lambda x: x * x)(kiln.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacrev", func, argnums, has_aux, "reverse-mode")


def jacfwd(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[P, Any]:
    """A function that gives the Jacobian of func, column by column.

    argnums: by which argument, or a tuple of several. has_aux: func gives (output, something else).
    randomness changes nothing.

    >>> kiln.func.jacfwd(lambda x: x * x)(kiln.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacfwd", func, argnums, has_aux, "forward-mode")


def hessian(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]:
    """A function that gives the second derivatives of func: [*output, *input, *input].

    argnums: by which argument, or a tuple of several.

    >>> kiln.func.hessian(lambda x: (x**3).sum())(kiln.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
