"""Adafactor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_not_negative

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["Adafactor"]


class Adafactor(GroupOptimizer):
    """Adafactor (Shazeer & Stern, 2018): a second moment kept by rows and columns.

    rho = min(lr, 1 / sqrt(t)); alpha = max(eps[1], rms(p)) rho; p *= 1 - lr weight_decay. The means
    of g^2 over rows and over columns are running means of weight t^beta2_decay;
    v = rows columns / mean(rows); u = g / sqrt(max(v, eps[0]^2)); p -= alpha u / max(1, rms(u) / d).
    eps[0] None: the rounding unit of the parameter's dtype. State: "step", "row_var" and "col_var",
    or "variance" for a parameter of one dim.

    params: tensors, or dicts with "params" and options of a group. maximize: whether steps go up.
    foreach changes nothing.

    >>> x = kiln.ones(2, 2, requires_grad=True)
    >>> optimizer = kiln.optim.Adafactor([x])
    >>> (x * 4).sum().backward()
    >>> optimizer.step()
    >>> bool((x < 1).all())
    True
    """

    _step_group = staticmethod(_optim.adafactor_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_not_negative(lr=lr, weight_decay=weight_decay, eps1=eps[0] or 0.0, eps2=eps[1])
        if not beta2_decay <= 0.0:
            raise errors.ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if not 1.0 <= d:
            raise errors.ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
