"""Adadelta."""

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

__all__ = ["Adadelta"]


class Adadelta(GroupOptimizer):
    """Adadelta (Zeiler, 2012).

    v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2;
    p -= lr d. State: "step", "square_avg" (v), "acc_delta" (u).
    """

    _step_group = staticmethod(_optim.adadelta_step)

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
