"""AdamW8bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_betas, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["AdamW8bit"]


class AdamW8bit(GroupOptimizer):
    """AdamW with a state of 8 bits for each number (Dettmers et al., 2022).

    State of a parameter with min_8bit_size elements or more: "step", "state1" and "state2", a byte
    for each element, and "absmax1" and "absmax2", a number for each block of block_size elements.
    Others have "state1" and "state2" in float32. bitsandbytes' optimizer of this name has the same.

    params: tensors, or dicts with "params" and options of a group. lr: the learning rate. betas:
    how much of the averages stays at each step. eps: added to divisors. weight_decay: p first loses
    lr weight_decay p. maximize: whether steps go up.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.AdamW8bit([x], lr=0.5, weight_decay=0.)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # the first step is lr times the gradient's sign
    >>> round(x.item(), 4)
    0.5
    """

    _step_group = staticmethod(_optim.adamw_8bit_step)
    _own_dtypes = frozenset({"state1", "state2", "absmax1", "absmax2"})

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        min_8bit_size: int = 4096,
        block_size: int = 256,
        maximize: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps, weight_decay=weight_decay, min_8bit_size=min_8bit_size)
        if block_size < 1:
            raise errors.ValueError(f"Invalid block_size value: {block_size}")
        defaults = {
            "lr": lr,
            "betas": check_betas(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "min_8bit_size": min_8bit_size,
            "block_size": block_size,
            "maximize": maximize,
            "differentiable": False,
        }
        super().__init__(params, defaults)
