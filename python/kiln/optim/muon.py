"""Muon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from .._C import _optim
from .optimizer import GroupOptimizer, check_not_negative

if TYPE_CHECKING:
    from .._typing import Params

__all__ = ["Muon"]


class Muon(GroupOptimizer):
    """Muon (Jordan et al., 2024): momentum made orthogonal, for matrices.

    buf += (1 - momentum) (g - buf); u = nesterov ? g + momentum (buf - g) : buf;
    p *= 1 - lr weight_decay; p -= rate O(u), where O brings all singular values near 1 by ns_steps
    iterations with ns_coefficients, in float32 (PyTorch: bfloat16). rate: lr sqrt(max(1, A / B)) for a parameter of
    shape [A, B] ("original"), or 0.2 lr sqrt(max(A, B)) ("match_rms_adamw"). Biases and embeddings
    belong to another optimizer. State: "momentum_buffer".

    params: tensors, or dicts with "params" and options of a group. eps: added to divisors.
    adjust_lr_fn: "original" or "match_rms_adamw": how the rate depends on the shape.

    >>> x = kiln.eye(2).requires_grad_()
    >>> optimizer = kiln.optim.Muon([x])
    >>> (x * 4).sum().backward()
    >>> optimizer.step()
    >>> kiln.equal(x, kiln.eye(2))
    False
    """

    _step_group = staticmethod(_optim.muon_step)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise errors.ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if len(ns_coefficients) != 3:
            raise errors.ValueError(
                f"Muon: ns_coefficients must be 3 numbers; got {len(ns_coefficients)}"
            )
        if not 0 <= ns_steps < 100:
            raise errors.ValueError(f"Muon: ns_steps must be in [0, 100); got {ns_steps}")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise errors.ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size:"
                        f" {list(p.shape)}; try AdamW for the others"
                    )
