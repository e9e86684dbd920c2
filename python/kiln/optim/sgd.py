"""SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["SGD"]


class SGD(GroupOptimizer):
    """Stochastic gradient descent, with momentum.

    g = grad (-grad with maximize) + weight_decay p; buf = momentum buf + (1 - dampening) g, at
    first g; p -= lr (nesterov ? g + momentum buf : buf). State: "momentum_buffer", with momentum.
    foreach and fused change nothing: there is one step, and it is fused.

    params: tensors, or dicts with "params" and options of a group. Raises ValueError for options below 0.

    differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.SGD([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # 1 - 0.5 * 4
    >>> x.item()
    -1.0
    """

    _step_group = staticmethod(_optim.sgd_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise errors.ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_hints("SGD", foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
