"""Lion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_hints, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Lion"]


class Lion(GroupOptimizer):
    """Lion (Chen et al., 2023): steps by the sign of a momentum.

    p *= 1 - lr weight_decay; p -= lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g.
    State: "step", "exp_avg". A good lr is a third to a tenth of Adam's.

    params: tensors, or dicts with "params" and options of a group. betas: how much of the averages
    stays at each step. maximize: whether steps go up. foreach and capturable change nothing.
    differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.Lion([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # lr times a sign
    >>> x.item()
    0.5
    """

    _step_group = staticmethod(_optim.lion_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, weight_decay=weight_decay)
        check_hints("Lion", foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": check_betas(betas),
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)
