"""RMSprop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["RMSprop"]


class RMSprop(GroupOptimizer):
    """RMSprop (Hinton, 2012), centered as in Graves (2013).

    v = alpha v + (1 - alpha) g^2; with centered, d = sqrt(v - (mean of g)^2) + eps, otherwise
    sqrt(v) + eps; buf = momentum buf + g / d; p -= lr buf. State: "step", "square_avg" and, where
    used, "momentum_buffer" and "grad_avg".

    params: tensors, or dicts with "params" and options of a group. weight_decay: how much of p is
    added to the gradient. maximize: whether steps go up. foreach and capturable change nothing.
    differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.RMSprop([x], lr=0.5, alpha=0.)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # lr 4 / sqrt(4^2)
    >>> round(x.item(), 4)
    0.5
    """

    _step_group = staticmethod(_optim.rmsprop_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(
            lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        check_hints("RMSprop", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)
