"""torch._foreach_add and the like: an op on each tensor of a list.

PyTorch does not document them, but optimizers of programs call them. Here they are loops, and give
what the ops of single tensors give. Those with _ at their end write to the tensors of the first list,
and give it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

# One operand.
_UNARY = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg
    reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
""".split()
# A second operand: a number, a tensor, or a list with a number or a tensor for each.
_BINARY = "add sub mul div pow clamp_max clamp_min maximum minimum".split()
_LIMITS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # of numbers
_TERNARY = "addcmul addcdiv".split()


def _each(value: Any, count: int) -> list[Any]:
    """What goes with each tensor of a list."""
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise RuntimeError(
                f"_foreach: expected lists of the same length; got {count} and {len(value)}"
            )
        return list(value)
    return [value] * count


def _method(name: str, operand: Any, in_place: bool) -> Callable[..., Any]:
    if name in _LIMITS and not isinstance(operand, _C.Tensor):
        name = _LIMITS[name]
    if in_place and name in ("maximum", "minimum"):
        plain = getattr(_C.Tensor, name)
        return lambda x, y: x.copy_(plain(x, y))
    return getattr(_C.Tensor, name + "_" if in_place else name)


def _unary(name: str, in_place: bool) -> Callable[..., Any]:
    op = getattr(_C.Tensor, name + "_" if in_place else name)

    def function(self: Sequence[Any]) -> Any:
        results = [op(x) for x in self]
        return self if in_place else tuple(results)

    return function


def _binary(name: str, in_place: bool) -> Callable[..., Any]:
    def function(
        self: Any,
        other: Any = None,
        *,
        alpha: Any = 1,
        scalar: Any = None,
        scalars: Any = None,
        exponent: Any = None,
        tensor: Any = None,
    ) -> Any:
        for word in (scalar, scalars, exponent, tensor):
            other = other if word is None else word
        if isinstance(self, (int, float)) and name == "pow":  # a number to the power of each
            return tuple(_C.pow(self, x) for x in other)
        options = {} if alpha == 1 else {"alpha": alpha}
        results = [
            _method(name, y, in_place)(x, y, **options)
            for x, y in zip(self, _each(other, len(self)))
        ]
        return self if in_place else tuple(results)

    return function


def _ternary(name: str, in_place: bool) -> Callable[..., Any]:
    op = getattr(_C.Tensor, name + "_" if in_place else name)

    def function(
        self: Sequence[Any], tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None
    ) -> Any:
        numbers = value if scalars is None else scalars
        if isinstance(numbers, _C.Tensor):
            numbers = numbers.tolist()
        n = len(self)
        each = zip(self, _each(tensor1, n), _each(tensor2, n), _each(numbers, n))
        results = [op(x, y, z, value=number) for x, y, z, number in each]
        return self if in_place else tuple(results)

    return function


def _lerp(in_place: bool) -> Callable[..., Any]:
    op = _C.Tensor.lerp_ if in_place else _C.Tensor.lerp

    def function(
        self: Sequence[Any],
        tensors1: Sequence[Any],
        weight: Any = None,
        *,
        weights: Any = None,
        scalars: Any = None,
    ) -> Any:
        for word in (weights, scalars):
            weight = weight if word is None else word
        results = [
            op(x, y, w) for x, y, w in zip(self, tensors1, _each(weight, len(self)))
        ]
        return self if in_place else tuple(results)

    return function


def _foreach_norm(self: Sequence[Any], ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    from . import linalg

    return tuple(linalg.vector_norm(x, ord, dtype=dtype) for x in self)


def _foreach_max(self: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(x.max() for x in self)


def _foreach_clone(self: Sequence[Any], *, memory_format: Any = None) -> tuple[Any, ...]:
    return tuple(x.clone(memory_format=memory_format) for x in self)


def _foreach_zero_(self: Sequence[Any]) -> Any:
    for x in self:
        x.zero_()
    return self


def _foreach_copy_(self: Sequence[Any], src: Sequence[Any], non_blocking: bool = False) -> Any:
    for x, y in zip(self, _each(src, len(self))):
        x.copy_(y)
    return self


def _functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for end in ("", "_"):
        for names, make in ((_UNARY, _unary), (_BINARY, _binary), (_TERNARY, _ternary)):
            for name in names:
                if hasattr(_C.Tensor, name + end) or name in _LIMITS:
                    found[f"_foreach_{name}{end}"] = make(name, bool(end))
        found[f"_foreach_lerp{end}"] = _lerp(bool(end))
    for name, function in found.items():
        function.__name__ = function.__qualname__ = name
    for known in (_foreach_norm, _foreach_max, _foreach_clone, _foreach_zero_, _foreach_copy_):
        found[known.__name__] = known
    return found


FUNCTIONS = _functions()
