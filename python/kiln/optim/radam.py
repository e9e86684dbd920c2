"""RAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["RAdam"]


class RAdam(GroupOptimizer):
    """RAdam (Liu et al., 2020): Adam whose adaptive rate waits until its variance can be known.

    rho = rho_inf - 2 t beta2^t / (1 - beta2^t), rho_inf = 2 / (1 - beta2) - 1; up to rho = 5 the
    step is lr m / (1 - beta1^t), then Adam's times a factor of rectification. State: "step",
    "exp_avg", "exp_avg_sq".

    params: tensors, or dicts with "params" and options of a group. betas: how much of the averages
    stays at each step. eps: added to divisors. weight_decay: how much of p is added to the
    gradient. decoupled_weight_decay: p loses lr weight_decay p instead. maximize: whether steps go
    up. foreach and capturable change nothing. differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.RAdam([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # 1 - 0.5 * 4: the variance is not known yet
    >>> round(x.item(), 4)
    -1.0
    """

    _step_group = staticmethod(_optim.radam_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        check_hints("RAdam", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": check_betas(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)
