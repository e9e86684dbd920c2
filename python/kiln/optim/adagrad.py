"""Adagrad."""

from .. import _C
from ._state_dict import step_tensor
from .composed import ComposedOptimizer
from .optimizer import check_hints, check_not_negative

__all__ = ["Adagrad"]


class Adagrad(ComposedOptimizer):
    """Adagrad (Duchi et al., 2011).

    s += g^2, from initial_accumulator_value on; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) +
    eps). State, from the beginning: "step", "sum".
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_not_negative(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        check_hints("Adagrad", foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._new_state(p.detach(), group)

    def _slots(self, group):
        return ("sum",)

    def _new_state(self, p, group):
        start = self.defaults["initial_accumulator_value"]
        return {"step": step_tensor(0), "sum": _C.full_like(p, start)}

    def _update(self, p, grad, state, step, group):
        rate = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        root = state["sum"].addcmul_(grad, grad, value=1).sqrt().add_(group["eps"])
        p.addcdiv_(grad, root, value=-rate)
