"""NAdam."""

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

__all__ = ["NAdam"]


class NAdam(GroupOptimizer):
    """NAdam (Dozat, 2016): Adam with Nesterov's momentum, mu_t = beta1 (1 - 0.96^(t decay) / 2).

    State: "step", "mu_product" (of mu_1 to mu_t), "exp_avg", "exp_avg_sq".
    """

    _step_group = staticmethod(_optim.nadam_step)

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
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
