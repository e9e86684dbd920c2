"""RAdam."""

from .composed import ComposedOptimizer
from .optimizer import check_betas, check_hints, check_not_negative

__all__ = ["RAdam"]


class RAdam(ComposedOptimizer):
    """RAdam (Liu et al., 2020): Adam whose adaptive rate waits until its variance can be known.

    rho = rho_inf - 2 t beta2^t / (1 - beta2^t), rho_inf = 2 / (1 - beta2) - 1; up to rho = 5 the
    step is lr m / (1 - beta1^t), then Adam's times a factor of rectification. State: "step",
    "exp_avg", "exp_avg_sq".
    """

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

    def _slots(self, group):
        return ("exp_avg", "exp_avg_sq")

    def _update(self, p, grad, state, step, group):
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        rate = float(group["lr"]) / (1 - beta1**step)
        left = 1 - beta2**step
        most = 2 / (1 - beta2) - 1
        rho = most - 2 * step * beta2**step / left
        if rho <= 5:
            p.add_(mean, alpha=-rate)
            return
        rectification = ((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) ** 0.5
        root = square.sqrt().add_(group["eps"])
        p.addcdiv_(mean, root, value=-rate * rectification * left**0.5)
