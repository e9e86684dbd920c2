"""SparseAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_betas

if TYPE_CHECKING:
    from .._C import Tensor
    from .._typing import Params

__all__ = ["SparseAdam"]


class SparseAdam(GroupOptimizer):
    """Adam for tables of which a step uses few rows, such as embeddings.

    Only rows (indices of the first dim) whose gradient is not all 0 take a step; the others and
    their moments stay as they are. State: "step", "exp_avg", "exp_avg_sq".

    params: tensors, or dicts with "params" and options of a group. lr: the learning rate. betas:
    how much of the averages stays at each step. eps: added to divisors. maximize: whether steps go
    up.

    >>> table = kiln.nn.Embedding(3, 2)
    >>> optimizer = kiln.optim.SparseAdam(table.parameters())
    >>> table(kiln.tensor([1])).sum().backward()
    >>> optimizer.step()
    """

    _step_group = staticmethod(_optim.sparse_adam_step)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        for name, value in (("lr", lr), ("eps", eps)):
            if not 0.0 < value:
                raise errors.ValueError(f"SparseAdam: {name} must be > 0; got {value}")
        defaults = {
            "lr": lr,
            "betas": check_betas(betas),
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
