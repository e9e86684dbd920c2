"""ASGD."""

from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

__all__ = ["ASGD"]


class ASGD(GroupOptimizer):
    """Averaged stochastic gradient descent (Polyak & Juditsky, 1992).

    eta = lr / (1 + lambd lr t)^alpha, lr at first; g = grad + weight_decay p; p *= 1 - lambd eta;
    p -= eta g. From step t0 on "ax" is the mean of p. State: "step", "eta", "mu", "ax".
    """

    _step_group = staticmethod(_optim.asgd_step)

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
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
