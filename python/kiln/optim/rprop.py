"""Rprop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Rprop"]


class Rprop(GroupOptimizer):
    """Rprop (Riedmiller & Braun, 1993): steps by the sign of the gradient.

    Each element has a step size, lr at first. Where the gradient keeps its sign, the size grows by
    etas[1]; where it turns, the size shrinks by etas[0] and there is no step. Sizes stay within
    step_sizes. State: "step", "prev", "step_size".

    params: tensors, or dicts with "params" and options of a group. maximize: whether steps go up.
    foreach and capturable change nothing. differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.Rprop([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # lr times the gradient's sign
    >>> x.item()
    0.5
    """

    _step_group = staticmethod(_optim.rprop_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise errors.ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        check_hints("Rprop", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)
