"""Loss scaling: gradients in float16 keep what would be too small for it."""

from __future__ import annotations

import math
import struct
import warnings
from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .._C import Tensor
    from .._typing import DeviceLike
    from ..optim.optimizer import Optimizer

_NO_SCALE = "; was the loss scaled with scale()?"


class OptState(Enum):
    """What has been done for an optimizer since the last update().

    >>> kiln.amp.grad_scaler.OptState.READY.name
    'READY'
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _to_float32(number):
    """The float32 nearest to the number; infinite beyond the largest."""
    number = float(number)
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def _new_state():
    return {"stage": OptState.READY, "found_inf": None}


class GradScaler:
    """scale(loss).backward(); step(optimizer); update().

    step() leaves the optimizer's step out when a gradient is infinite or NaN, and update() then
    multiplies the scale by backoff_factor; after growth_interval iterations without that it
    multiplies it by growth_factor. With enabled=False every method passes on what it is given.

    >>> scaler = kiln.GradScaler("cpu", init_scale=8.)
    >>> scaler.scale(kiln.tensor(2.))
    tensor(16.)
    """

    def __init__(
        self,
        device: DeviceLike | None = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not isinstance(device, str):
            raise errors.TypeError(f"GradScaler: expected device to be a str; got {device!r}")
        if device.partition(":")[0] != "cuda" or _C._cuda_device_count() > 0:
            _C._device(device)
        elif enabled:
            warnings.warn(
                "GradScaler: there is no CUDA device; disabling", UserWarning, stacklevel=2
            )
            enabled = False
        self._device = device
        self._enabled = bool(enabled)
        if self._enabled:
            if not growth_factor > 1.0:
                raise errors.AssertionError(
                    f"GradScaler: growth_factor must be > 1; got {growth_factor}"
                )
            if not backoff_factor < 1.0:
                raise errors.AssertionError(
                    f"GradScaler: backoff_factor must be < 1; got {backoff_factor}"
                )
            self._init_scale = init_scale
            self._init_growth_tracker = 0
            self._scale: Any = None  # a float32 from the first scale() on
            self._growth_tracker: Any = None
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._per_optimizer_states: defaultdict[int, Any] = defaultdict(_new_state)

    def _check_scaled(self, op):
        if self._scale is None:
            raise errors.AssertionError(f"GradScaler.{op}: there is no scale yet{_NO_SCALE}")

    def scale(self, outputs: Any) -> Any:
        """A tensor, or every tensor in lists, tuples and other iterables, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            if self._scale is None:
                self._scale = _to_float32(self._init_scale)
                self._growth_tracker = self._init_growth_tracker
            scale = _C.full((), float(self._scale), dtype=_C.float32, device=outputs.device)
            return outputs * scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise errors.ValueError(
            f"GradScaler.scale: expected a tensor or an iterable of them; got {type(outputs).__name__}"
        )

    @staticmethod
    def _gradients(optimizer):
        found = []
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.dtype is _C.float16:
                    raise errors.ValueError(
                        "GradScaler: Attempting to unscale FP16 gradients; expected parameters in"
                        " float32, with autocast for the ops"
                    )
                found.append(param.grad)
        return found

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of the optimizer's parameters by the scale, for clipping before step()."""
        if not self._enabled:
            return
        self._check_scaled("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise errors.RuntimeError(
                "GradScaler: unscale_() has already been called on this optimizer since the last"
                " update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise errors.RuntimeError("GradScaler: unscale_() is being called after step().")
        gradients = self._gradients(optimizer)
        inverse = _to_float32(1.0 / self._scale if self._scale else math.inf)
        finite = _C._unscale_gradients(gradients, inverse)
        state["found_inf"] = float(not finite) if gradients else None
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """unscale_(optimizer) unless that has been done, then optimizer.step(*args, **kwargs).

        Without the step, and None, when a gradient is infinite or NaN.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise errors.RuntimeError(
                "GradScaler.step: Closure use is not currently supported if GradScaler is enabled."
            )
        self._check_scaled("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise errors.RuntimeError(
                "GradScaler: step() has already been called since the last update()."
            )
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if state["found_inf"] is None:
            raise errors.AssertionError(
                "GradScaler.step: No inf checks were recorded for this optimizer: none of its"
                " parameters has a gradient"
            )
        result = None if state["found_inf"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """At the end of an iteration: the next scale; or the one given, a float or a tensor of one element."""
        if not self._enabled:
            return
        self._check_scaled("update")
        if new_scale is not None:
            if isinstance(new_scale, _C.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise errors.AssertionError(
                        "GradScaler.update: new_scale should be a float or a tensor of 1 element"
                        " with requires_grad=False"
                    )
                new_scale = new_scale.item()
            self._scale = _to_float32(new_scale)
        else:
            found = [s["found_inf"] for s in self._per_optimizer_states.values()]
            found = [x for x in found if x is not None]
            if not found:
                raise errors.AssertionError(
                    "GradScaler.update: No inf checks were recorded prior to update."
                )
            scale, self._growth_tracker = _C._next_loss_scale(
                float(self._scale),
                self._growth_tracker,
                any(found),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
            self._scale = _to_float32(scale)
        self._per_optimizer_states = defaultdict(_new_state)

    def get_scale(self) -> float:
        """The scale; 1.0 when this is disabled."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale if self._scale is None else self._scale)

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets it."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a gradient that was not finite."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets it."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many iterations the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets it."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Numbers under PyTorch's keys; empty when this is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over such numbers, PyTorch's too. Raises RuntimeError for an empty dict."""
        if not self._enabled:
            return
        if not state_dict:
            raise errors.RuntimeError(
                "GradScaler.load_state_dict: The source state dict is empty, possibly because it"
                " was saved from a disabled instance of GradScaler."
            )
        names = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
        scale, growth, backoff, interval, tracker = (state_dict[name] for name in names)
        self._init_scale, self._init_growth_tracker = scale, tracker
        if self._scale is not None:
            self._scale, self._growth_tracker = _to_float32(scale), tracker
        self._growth_factor, self._backoff_factor = growth, backoff
        self._growth_interval = interval

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise errors.AssertionError(
                    "GradScaler: it may only be pickled at the beginning of an iteration, or after"
                    " update()"
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
