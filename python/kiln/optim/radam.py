"""RAdam."""

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

__all__ = ["RAdam"]


class RAdam(GroupOptimizer):
    """RAdam (Liu et al., 2020): Adam whose adaptive rate waits until its variance can be known.

    rho = rho_inf - 2 t beta2^t / (1 - beta2^t), rho_inf = 2 / (1 - beta2) - 1; up to rho = 5 the
    step is lr m / (1 - beta1^t), then Adam's times a factor of rectification. State: "step",
    "exp_avg", "exp_avg_sq".
    """

    _step_group = staticmethod(_optim.radam_step)

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
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
