"""NAdam."""

from .. import _C
from ._state_dict import step_tensor
from .composed import ComposedOptimizer
from .optimizer import check_betas, check_hints, check_not_negative

__all__ = ["NAdam"]


class NAdam(ComposedOptimizer):
    """NAdam (Dozat, 2016): Adam with Nesterov's momentum, mu_t = beta1 (1 - 0.96^(t decay) / 2).

    State: "step", "mu_product" (of mu_1 to mu_t), "exp_avg", "exp_avg_sq".
    """

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

    def _slots(self, group):
        return ("exp_avg", "exp_avg_sq")

    def _new_state(self, p, group):
        moments = {name: _C.zeros_like(p) for name in self._slots(group)}
        return {"step": step_tensor(0), "mu_product": step_tensor(1), **moments}

    def _update(self, p, grad, state, step, group):
        beta1, beta2 = group["betas"]
        lr, decay = float(group["lr"]), group["momentum_decay"]
        mu, mu_next = (beta1 * (1 - 0.5 * 0.96 ** (t * decay)) for t in (step, step + 1))
        state["mu_product"] *= mu
        product = float(state["mu_product"])
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = square.div(1 - beta2**step).sqrt_().add_(group["eps"])
        p.addcdiv_(grad, root, value=-lr * (1 - mu) / (1 - product))
        p.addcdiv_(mean, root, value=-lr * mu_next / (1 - product * mu_next))
