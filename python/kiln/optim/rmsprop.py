"""RMSprop."""

from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

__all__ = ["RMSprop"]


class RMSprop(GroupOptimizer):
    """RMSprop (Hinton, 2012), centered as in Graves (2013).

    v = alpha v + (1 - alpha) g^2; with centered, d = sqrt(v - (mean of g)^2) + eps, otherwise
    sqrt(v) + eps; buf = momentum buf + g / d; p -= lr buf. State: "step", "square_avg" and, where
    used, "momentum_buffer" and "grad_avg".
    """

    _step_group = staticmethod(_optim.rmsprop_step)

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
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
