"""Adan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Adan"]


class Adan(GroupOptimizer):
    """Adan (Xie et al., 2022): Nesterov's momentum of gradients and of their changes.

    d = g - (g before); m, v and n are running means of g, d and (g + beta2 d)^2, corrected as
    Adam's; u = (m + beta2 v) / (sqrt(n) + eps); p = (p - lr u) / (1 + lr weight_decay) or, with
    no_prox, p (1 - lr weight_decay) - lr u. State: "step", "exp_avg", "exp_avg_diff",
    "exp_avg_sq", "previous_grad".

    params: tensors, or dicts with "params" and options of a group. betas: how much of the averages
    stays at each step. maximize: whether steps go up. foreach and capturable change nothing.
    differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.Adan([x])
    >>> (x * 4).sum().backward()
    >>> optimizer.step()
    >>> x.item() < 1
    True
    """

    _step_group = staticmethod(_optim.adan_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float, float] = (0.98, 0.92, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 0,
        no_prox: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        check_hints("Adan", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": check_betas(betas, 3),
            "eps": eps,
            "weight_decay": weight_decay,
            "no_prox": no_prox,
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)
