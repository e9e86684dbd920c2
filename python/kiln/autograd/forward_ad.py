"""Derivatives along a direction, with tensors that carry it: dual tensors.

Kiln records the ops on a dual tensor, and unpack_dual computes the tangent of a result from that
record, as kiln.func.jvp does. So a dual tensor requires a gradient, the ops on it must not stand
under no_grad, and each unpack_dual costs two passes over the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .. import _C, errors
from .grad_mode import enable_grad

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """What unpack_dual gives: the values, and their derivative along the tangents, or None.

    >>> kiln.autograd.forward_ad.UnpackedDualTensor(kiln.ones(1), None)
    UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual tensors of one level, and what they stand for."""

    def __init__(self) -> None:
        self.guard = enable_grad()
        self.recorded = _C.is_grad_enabled()
        self.points: list[Tensor] = []
        self.tangents: list[Tensor] = []
        # The leaves that only this level has: they do not make a result require a gradient.
        self.leaves: set[Any] = set()


_levels: list[_Level] = []


def enter_dual_level() -> int:
    """Begins a level of dual tensors, and gives its number: 0. There is one level at a time.

    >>> level = kiln.autograd.forward_ad.enter_dual_level()
    >>> kiln.autograd.forward_ad.exit_dual_level(level=level)
    """
    if _levels:
        raise errors.RuntimeError("Nested forward mode AD is not supported at the moment")
    level = _Level()
    level.guard.__enter__()
    _levels.append(level)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its dual tensors have no tangents any more.

    level: the number that enter_dual_level gave, or None for the last one.

    >>> level = kiln.autograd.forward_ad.enter_dual_level()
    >>> kiln.autograd.forward_ad.exit_dual_level()
    """
    if not _levels:
        raise errors.RuntimeError("exit_dual_level: no level was entered")
    if level not in (None, 0):
        raise errors.RuntimeError(
            f"exit_dual_level: a level can only be left when it is the last one; got {level}"
        )
    _levels.pop().guard.__exit__(None, None, None)


class dual_level:
    """A level of dual tensors within a with block, which gives the level's number.

    >>> with kiln.autograd.forward_ad.dual_level() as level:
    ...     level
    0
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: object) -> None:
        exit_dual_level()


def _node_of(x: Tensor) -> Any:
    """The node of a graph that a tensor stands for; a leaf has one, too."""
    with enable_grad():
        view: Any = x.view_as(x)
    return view.grad_fn.next_functions[0][0]


def _checked(primal: Tensor, tangent: Tensor) -> None:
    for name, x in (("primal", primal), ("tangent", tangent)):
        if not isinstance(x, _C.Tensor):
            raise errors.TypeError(f"make_dual: {name} must be a tensor; got {type(x).__name__}")
        if not (x.is_floating_point() or x.is_complex()):
            raise errors.ValueError(
                f"Expected {name} to be floating point or complex, but got: {x.dtype}"
            )
    if primal.shape != tangent.shape:
        raise errors.RuntimeError(
            "make_dual: the tangent must have the size of the primal; got "
            f"{list(tangent.shape)} for {list(primal.shape)}"
        )
    if primal.dtype != tangent.dtype:
        raise errors.RuntimeError(
            f"make_dual: the tangent must have the dtype {primal.dtype}; got {tangent.dtype}"
        )


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor: the values of a tensor, with a direction of the same shape and dtype.

    tensor: of a floating or complex dtype. tangent: the direction along which results are
    differentiated. level: the number of the level, or None for the last one.

    A dual tensor has its own memory, unless the tensor requires a gradient.

    >>> import kiln.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(kiln.tensor([2., 3.]), kiln.tensor([1., 0.]))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor([4., 0.])
    """
    if not _levels or level not in (None, 0):
        raise errors.RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    _checked(tensor, tangent)
    here = _levels[-1]
    if tensor.requires_grad and _tangent(tensor, here) is not None:
        raise errors.RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    with enable_grad():
        if tensor.requires_grad:
            point = dual = tensor.view_as(tensor)
        else:
            # A copy may be written to, which a leaf may not.
            point = tensor.detach().requires_grad_()
            here.leaves.add(_node_of(point))
            dual = point.clone()
    here.points.append(point)
    here.tangents.append(tangent)
    return dual


def _tangent(x: Tensor, level: _Level) -> Tensor | None:
    """The derivative of x along the tangents of a level: g(w) = w^T J is linear in w, so that its
    derivative is J times the tangents."""
    if not level.points:
        return None
    with enable_grad():
        w = _C.zeros_like(x.detach()).requires_grad_()
        found = _C.grad((x,), tuple(level.points), (w,), True, True, True)
        pairs = [(g, t) for g, t in zip(found, level.tangents) if g is not None]
        if not pairs:
            return None
        linear = [(g, t) for g, t in pairs if g.requires_grad]
        if not linear:
            return _C.zeros_like(x.detach())
        slopes, along = zip(*linear)
        # The adjoint of a complex product conjugates; both passes do, so that the result is J t.
        result = _C.grad(slopes, (w,), along, True, True, True)[0]
        return _C.zeros_like(x.detach()) if result is None else result


def _is_recorded(x: Tensor, own: set[Any]) -> bool:
    """Whether x depends on a leaf beside those."""
    waiting, seen = [_node_of(x)], set()
    while waiting:
        node = waiting.pop()
        if node in seen or node in own:
            continue
        seen.add(node)
        if not node.next_functions:
            return True
        waiting += [following for following, _ in node.next_functions if following is not None]
    return False


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The values of a tensor, and their derivative along the tangents of the level's dual tensors.

    tensor: what was computed from dual tensors. level: the number of the level, or None for the
    last one. The tangent is None where no dual tensor is part of it, and outside of a level.

    >>> import kiln.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(kiln.tensor([0.]), kiln.tensor([2.]))
    ...     fwAD.unpack_dual(x.sin())
    UnpackedDualTensor(primal=tensor([0.]), tangent=tensor([2.]))
    """
    if not isinstance(tensor, _C.Tensor):
        raise errors.TypeError(f"unpack_dual: expected a tensor; got {type(tensor).__name__}")
    if not _levels or level not in (None, 0):
        return UnpackedDualTensor(tensor, None)
    here = _levels[-1]
    if not tensor.requires_grad:
        if here.points and not _C.is_grad_enabled():
            raise errors.RuntimeError(
                "unpack_dual: nothing is recorded under no_grad, so that the tangent cannot be "
                "computed; enter no_grad before the dual level"
            )
        return UnpackedDualTensor(tensor, None)
    tangent = _tangent(tensor, here)
    if not here.recorded:
        return UnpackedDualTensor(tensor.detach(), None if tangent is None else tangent.detach())
    primal = tensor if _is_recorded(tensor, here.leaves) else tensor.detach()
    if tangent is not None and tangent.requires_grad and not _is_recorded(tangent, here.leaves):
        tangent = tangent.detach()
    return UnpackedDualTensor(primal, tangent)
