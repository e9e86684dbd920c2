"""ASGD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["ASGD"]


class ASGD(GroupOptimizer):
    """Averaged stochastic gradient descent (Polyak & Juditsky, 1992).

    eta = lr / (1 + lambd lr t)^alpha, lr at first; g = grad + weight_decay p; p *= 1 - lambd eta;
    p -= eta g. From step t0 on "ax" is the mean of p. State: "step", "eta", "mu", "ax".

    params: tensors, or dicts with "params" and options of a group. maximize: whether steps go up.
    foreach and capturable change nothing. differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.ASGD([x], lr=0.5, lambd=0.)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # 1 - 0.5 * 4
    >>> x.item()
    -1.0
    """

    _step_group = staticmethod(_optim.asgd_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, weight_decay=weight_decay)
        check_hints("ASGD", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)
