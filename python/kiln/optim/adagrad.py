"""Adagrad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C
from .._C import _optim
from ._state_dict import step_tensor
from .optimizer import GroupOptimizer, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Adagrad"]


class Adagrad(GroupOptimizer):
    """Adagrad (Duchi et al., 2011).

    s += g^2, from initial_accumulator_value on; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) +
    eps). State, from the beginning: "step", "sum".

    params: tensors, or dicts with "params" and options of a group. weight_decay: how much of p is
    added to the gradient. maximize: whether steps go up. foreach and fused change nothing.
    differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.Adagrad([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # lr 4 / sqrt(4^2)
    >>> round(x.item(), 4)
    0.5
    """

    _step_group = staticmethod(_optim.adagrad_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
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
                start = _C.full_like(p.detach(), initial_accumulator_value)
                self.state[p] = {"step": step_tensor(0), "sum": start}
