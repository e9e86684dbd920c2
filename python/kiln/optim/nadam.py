"""NAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["NAdam"]


class NAdam(GroupOptimizer):
    """NAdam (Dozat, 2016): Adam with Nesterov's momentum, mu_t = beta1 (1 - 0.96^(t decay) / 2).

    State: "step", "mu_product" (of mu_1 to mu_t), "exp_avg", "exp_avg_sq".

    params: tensors, or dicts with "params" and options of a group. lr: the learning rate. betas:
    how much of the averages stays at each step. eps: added to divisors. weight_decay: how much of p
    is added to the gradient. momentum_decay: how the momentum grows. decoupled_weight_decay: p
    loses lr weight_decay p instead. maximize: whether steps go up. foreach and capturable change
    nothing. differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.NAdam([x])
    >>> (x * 4).sum().backward()
    >>> optimizer.step()
    >>> x.item() < 1
    True
    """

    _step_group = staticmethod(_optim.nadam_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(
            lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        check_hints("NAdam", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": check_betas(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)
