"""LAMB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["LAMB"]


class LAMB(GroupOptimizer):
    """LAMB (You et al., 2020): Adam with a rate for each parameter, for large batches.

    r = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p, with Adam's m and v;
    p -= lr |p| / |r| r. State: "step", "exp_avg", "exp_avg_sq".

    params: tensors, or dicts with "params" and options of a group. betas: how much of the averages
    stays at each step. maximize: whether steps go up.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.LAMB([x])
    >>> (x * 4).sum().backward()
    >>> optimizer.step()
    >>> x.item() < 1
    True
    """

    _step_group = staticmethod(_optim.lamb_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": check_betas(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
