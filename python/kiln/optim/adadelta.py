"""Adadelta."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Adadelta"]


class Adadelta(GroupOptimizer):
    """Adadelta (Zeiler, 2012).

    v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2;
    p -= lr d. State: "step", "square_avg" (v), "acc_delta" (u).

    params: tensors, or dicts with "params" and options of a group. weight_decay: how much of p is
    added to the gradient. maximize: whether steps go up. foreach and capturable change nothing.
    differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.Adadelta([x])
    >>> (x * 4).sum().backward()
    >>> optimizer.step()
    >>> x.item() < 1
    True
    """

    _step_group = staticmethod(_optim.adadelta_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
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
