"""AdamW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adam import Adam

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import Params

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov & Hutter, 2019).

    cautious_weight_decay, which is Kiln's own, shrinks only what the step moves toward 0 (Chen et
    al., 2025).

    params: tensors, or dicts with "params" and options of a group. lr: the learning rate. betas:
    how much of the averages stays at each step. eps: added to divisors. weight_decay: p first loses
    lr weight_decay p. amsgrad: divide by the largest average so far. maximize: whether steps go up.
    foreach, fused and capturable change nothing. differentiable=True raises an error.

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.AdamW([x], lr=0.5, weight_decay=0.)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()  # the first step is lr times the gradient's sign
    >>> round(x.item(), 4)
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        cautious_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
        if cautious_weight_decay:
            self.defaults["cautious_weight_decay"] = True
            for group in self.param_groups:
                group.setdefault("cautious_weight_decay", True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also after the state of an Adam
