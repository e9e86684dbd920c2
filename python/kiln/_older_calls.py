"""Calls that PyTorch understands though their arguments are of other types: NumPy's numbers and
tensors of one number where a number is expected, arrays beside tensors, and the order of arguments
of older versions.

The bound functions come here when they refuse their arguments; see src/keywords.cpp. Calls that
they take pay nothing.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from . import _C, _dtypes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SUMS = {"add", "add_", "sub", "sub_", "subtract", "subtract_"}
_PRODUCTS = {"addcmul", "addcmul_", "addcdiv", "addcdiv_"}
_MATRICES = {name + end for name in ("addmm", "addmv", "addr", "addbmm", "baddbmm") for end in ("", "_")}
_OF_NUMBERS = {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"}
_DRAWN = {
    name + "_"
    for name in ("normal", "uniform", "trunc_normal", "orthogonal", "sparse", "xavier_uniform")
} | {"xavier_normal_", "kaiming_uniform_", "kaiming_normal_"}
_OPERATORS = {
    f"__{side}{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
    for side in ("", "r", "i")
} | {f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A number for what holds one; the same object for all else."""
    if isinstance(value, (int, float, complex, str, type(None))):
        return value
    if isinstance(value, _C.Tensor):
        return value if value.dim() > 0 or value.requires_grad else value.item()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        parts = [_plain(part) for part in value]
        changed = any(a is not b for a, b in zip(parts, value))
        return type(value)(parts) if changed else value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value


def _older_order(op: str, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Moves numbers that stood among the tensors to their keywords; whether there were any."""
    first = next((i for i, value in enumerate(args) if _is_number(value)), None)
    tensors = [value for value in args if isinstance(value, _C.Tensor)]
    numbers = [value for value in args if _is_number(value)]
    if first is None or isinstance(args[-1], (int, float)) or len(tensors) + len(numbers) != len(args):
        return False
    if op in _SUMS and len(tensors) == 2 and len(numbers) == 1:
        words = {"alpha": numbers[0]}
    elif op in _PRODUCTS and len(tensors) == 3 and len(numbers) == 1:
        words = {"value": numbers[0]}
    elif op in _MATRICES and len(tensors) == 3 and len(numbers) <= 2:
        words = dict(zip(("beta", "alpha"), numbers))
    else:
        return False
    warnings.warn(
        f"{op}: numbers before tensors are PyTorch's older order of arguments;"
        f" expected {', '.join(f'{name}={value}' for name, value in words.items())}",
        stacklevel=3,
    )
    args[:] = tensors
    kwargs.update(words)
    return True


def _with_generator(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A function that draws from the default generator alone draws from another one."""
    generator = kwargs.pop("generator")
    if generator is None:
        return function(*args, **kwargs)
    before = _C.get_rng_state()
    _C.set_rng_state(generator.get_state())
    try:
        return function(*args, **kwargs)
    finally:
        generator.set_state(_C.get_rng_state())
        _C.set_rng_state(before)


def _operator(function: Any, op: str, args: list[Any]) -> Any:
    """An operator of a tensor and an array of NumPy's, which is read as a tensor."""
    x, array = args
    try:
        other = _C.as_tensor(array, device=x.device)
    except TypeError:  # of texts or objects
        return NotImplemented
    if op.startswith("__r"):  # the tensor stands on the right
        return getattr(other, f"__{op[3:]}")(x)
    return function(x, other)


def _overridden(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What an argument that is no tensor makes of the call by its __torch_function__."""
    if _C._overriding() or not any(hasattr(type(value), "__torch_function__") for value in _parts(args, kwargs)):
        return NotImplemented
    from . import _overrides

    _overrides.override_from_now()
    return function(*args, **kwargs)


def _parts(args: list[Any], kwargs: dict[str, Any]) -> Iterator[Any]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, (list, tuple)):
            yield from (part for part in value if not isinstance(part, _C.Tensor))
        elif not isinstance(value, _C.Tensor):
            yield value


def _again(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    overridden = _overridden(function, args, kwargs)
    if overridden is not NotImplemented:
        return overridden
    op = function.__name__
    _dtypes.refuse_among((*args, *kwargs.values()), op)
    if op in _OPERATORS:
        return _operator(function, op, args)
    if kwargs.get("generator", "") is None or ("generator" in kwargs and op in _DRAWN):
        return _with_generator(function, args, kwargs)
    if _older_order(op, args, kwargs):
        return function(*args, **kwargs)
    if op == "manual_seed" and len(args) == 1 and isinstance(args[0], float):
        return function(int(args[0]))
    if op in _OF_NUMBERS and len(args) == 2 and all(map(_is_number, args)):
        return function(_C.tensor(args[0]), args[1], **kwargs)
    if op in ("randint", "randint_like") and "high" in kwargs and "low" not in kwargs:
        return function(*args, low=0, **kwargs)
    plain_kwargs = {name: _plain(value) for name, value in kwargs.items()}
    changed = any(plain_kwargs[name] is not kwargs[name] for name in kwargs)
    rest = [_plain(value) for value in args[1:]]
    changed = changed or any(a is not b for a, b in zip(rest, args[1:]))
    if changed:
        return function(*args[:1], *rest, **plain_kwargs)
    # A method's own tensor stays one.
    if args and type(function).__name__ != "nb_method":
        first = _plain(args[0])
        if first is not args[0]:
            return function(first, *rest, **kwargs)
    return NotImplemented


_C._set_again(_again)
