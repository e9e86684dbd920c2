"""Adadelta."""

from .. import errors
from .composed import ComposedOptimizer
from .optimizer import check_hints, check_not_negative

__all__ = ["Adadelta"]


class Adadelta(ComposedOptimizer):
    """Adadelta (Zeiler, 2012).

    v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2;
    p -= lr d. State: "step", "square_avg" (v), "acc_delta" (u).
    """

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise errors.ValueError(f"Invalid rho value: {rho}")
        check_hints("Adadelta", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return ("square_avg", "acc_delta")

    def _update(self, p, grad, state, step, group):
        rho, eps = group["rho"], group["eps"]
        square = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        moved = state["acc_delta"]
        delta = moved.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-float(group["lr"]))
