"""Adamax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Adamax"]


class Adamax(GroupOptimizer):
    """Adamax (Kingma & Ba, 2015): Adam with the infinity norm.

    m = beta1 m + (1 - beta1) g; u = max(beta2 u, |g| + eps); p -= lr / (1 - beta1^t) m / u.
    State: "step", "exp_avg", "exp_inf".

    params: tensors, or dicts with "params" and options of a group. betas: how much of the averages
    stays at each step. weight_decay: how much of p is added to the gradient. maximize: whether
    steps go up. foreach and capturable change nothing. differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.Adamax([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # the first step is lr times the gradient's sign
    >>> round(x.item(), 4)
    0.5
    """

    _step_group = staticmethod(_optim.adamax_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        check_hints("Adamax", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": check_betas(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)
