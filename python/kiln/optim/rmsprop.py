"""RMSprop."""

from .composed import ComposedOptimizer
from .optimizer import check_hints, check_not_negative

__all__ = ["RMSprop"]


class RMSprop(ComposedOptimizer):
    """RMSprop (Hinton, 2012), centered as in Graves (2013).

    v = alpha v + (1 - alpha) g^2; with centered, d = sqrt(v - (mean of g)^2) + eps, otherwise
    sqrt(v) + eps; buf = momentum buf + g / d; p -= lr buf. State: "step", "square_avg" and, where
    used, "momentum_buffer" and "grad_avg".
    """

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

    def _slots(self, group):
        names = ["square_avg"]
        names += ["momentum_buffer"] if group["momentum"] > 0 else []
        return names + (["grad_avg"] if group["centered"] else [])

    def _update(self, p, grad, state, step, group):
        alpha, lr = group["alpha"], float(group["lr"])
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        root = square.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, root)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(grad, root, value=-lr)
