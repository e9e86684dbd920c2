"""LBFGS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors
from .._C import _optim
from .optimizer import Optimizer, check_not_negative

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .._typing import Closure, Params

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS (Liu & Nocedal, 1989): a quasi-Newton method for small problems.

    A step takes up to max_iter directions and evaluates the closure up to max_eval times (5/4
    max_iter, if None). It ends early when no element of the gradient is larger than
    tolerance_grad, or when the loss and the parameters change by less than tolerance_change.
    line_search_fn: None for steps of length lr, or "strong_wolfe". There is one parameter group.
    State, under the first parameter: "func_evals", "n_iter" and the history of the curvature.

    params: tensors, or dicts with "params" and options of a group. history_size: how many steps are
    remembered.

    >>> x = kiln.tensor([0.], requires_grad=True)
    >>> optimizer = kiln.optim.LBFGS([x])
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> round(x.item(), 3)
    3.0
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_not_negative(lr=lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise errors.RuntimeError("only 'strong_wolfe' is supported")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise errors.ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups)"
            )

    def step(self, closure: Closure) -> Any:  # type: ignore[override]
        """One step; closure computes the loss again, with gradients. Returns the first loss."""
        if len(self.param_groups) != 1:
            raise errors.ValueError(
                f"Expected exactly one param_group, but got {len(self.param_groups)}"
            )
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        before = _C.is_grad_enabled()
        try:
            return _optim.lbfgs_step(group, state, closure)
        finally:
            _C._set_grad_enabled(before)

    # What classes that derive from PyTorch's use: the parameters as one long vector. Complex numbers
    # are pairs in it.

    @property
    def _params(self):
        return self.param_groups[0]["params"]

    def _numel(self):
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self._params)

    def _gather_flat_grad(self):
        views = []
        for p in self._params:
            g = _C.zeros_like(p.detach()) if p.grad is None else p.grad
            views.append((_C.view_as_real(g) if g.is_complex() else g).reshape(-1))
        return _C.cat(views, 0)

    def _add_grad(self, step_size, update):
        offset = 0
        for p in self._params:
            x = _C.view_as_real(p) if p.is_complex() else p
            x.add_(update[offset : offset + x.numel()].view_as(x), alpha=step_size)
            offset += x.numel()

    def _clone_param(self):
        return [p.clone(memory_format="contiguous_format") for p in self._params]

    def _set_param(self, params_data):
        for p, values in zip(self._params, params_data, strict=True):
            p.copy_(values)

    def _directional_evaluate(self, closure, x, t, d):
        self._add_grad(t, d)
        loss = float(closure())
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad
