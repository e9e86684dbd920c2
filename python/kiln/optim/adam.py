"""Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Adam"]


class Adam(GroupOptimizer):
    """Adam (Kingma & Ba, 2015).

    g = grad (-grad with maximize) + weight_decay p; m = beta1 m + (1 - beta1) g;
    v = beta2 v + (1 - beta2) g^2; p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).
    amsgrad takes the largest v so far; decoupled_weight_decay takes p *= 1 - lr weight_decay
    instead of the first sum. State: "step", "exp_avg", "exp_avg_sq" and, with amsgrad,
    "max_exp_avg_sq". foreach, fused and capturable change nothing: there is one step, and it is
    fused.

    params: tensors, or dicts with "params" and options of a group. betas: how much of the averages
    stays at each step. differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.Adam([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # the first step is lr times the gradient's sign
    >>> round(x.item(), 4)
    0.5
    """

    _step_group = staticmethod(_optim.adam_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        betas = check_betas(betas)  # type: ignore[assignment, arg-type]
        name = type(self).__name__
        check_hints(name, foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
