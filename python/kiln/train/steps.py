"""Steps: one batch forward and backward, and one step of the optimizers."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from .. import _C, errors
from ..amp import GradScaler, autocast
from ..nn.utils import clip_grad_norm_, clip_grad_value_
from ..optim import Optimizer
from ..optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from .losses import inputs_and_targets

if TYPE_CHECKING:
    from .._C import Tensor

PRECISIONS = {"bf16": _C.bfloat16, "f16": _C.float16, None: None}


def optimizers_of(given: Any) -> list[Optimizer]:
    """An optimizer, or a list or dict of them, as a list."""
    if given is None:
        return []
    items = given.values() if isinstance(given, dict) else given
    items = list(items) if isinstance(given, (dict, list, tuple)) else [given]
    for item in items:
        if not isinstance(item, Optimizer):
            raise errors.TypeError(
                f"Learner: expected an optimizer of kiln.optim; got {type(item).__name__}"
            )
    return items


class Steps:
    """What a Learner does with one batch. Part of Learner."""

    model: Any
    optimizer: Any

    def _init_steps(self, accumulate, clip_norm, clip_value, precision, scaler, ema):
        if not isinstance(accumulate, int) or accumulate < 1:
            raise errors.ValueError(
                f"Learner: accumulate must be an integer >= 1; got {accumulate!r}"
            )
        for name, value in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if value is not None and not value > 0:
                raise errors.ValueError(f"Learner: {name} must be > 0 or None; got {value!r}")
        if precision not in PRECISIONS and precision not in (_C.bfloat16, _C.float16):
            raise errors.ValueError(
                f"Learner: precision must be 'bf16', 'f16' or None; got {precision!r}"
            )
        self.accumulate = accumulate
        self.clip_norm = clip_norm
        self.clip_value = clip_value
        self._autocast_dtype = PRECISIONS.get(precision, precision)
        if scaler is None and self._autocast_dtype is _C.float16:
            scaler = GradScaler("cpu")
        self.scaler = scaler
        self.ema: AveragedModel | None = None
        if ema is not None:
            self.ema = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(ema))
        self._minimized = False

    # ---- To be overridden

    def forward(self, batch: Any) -> Any:
        """(outputs, targets) of a batch: its last part, or its entry "labels", is the target."""
        (args, kwargs), targets = inputs_and_targets(batch)
        return self.model(*args, **kwargs), targets

    def train_step(self, batch: Any) -> Any:
        """What is to be made smaller for a batch.

        Returns a loss, or a dict with "loss" and, for metrics, "outputs" and "targets"; numbers
        under other names are averaged and shown. A dict without "loss", or None, says that the
        step trained by itself, with minimize().
        """
        outputs, targets = self.forward(batch)
        return self._measured(outputs, targets)

    def valid_step(self, batch: Any) -> Any:
        """The same for measuring, in eval mode and without gradients."""
        outputs, targets = self.forward(batch)
        return self._measured(outputs, targets)

    def _measured(self, outputs, targets):
        if self.loss is not None:
            return {"loss": self.loss(outputs, targets), "outputs": outputs, "targets": targets}
        loss = outputs.get("loss") if isinstance(outputs, dict) else getattr(outputs, "loss", None)
        if loss is None:
            raise errors.ValueError(
                "Learner: there is no loss; expected loss=, a model whose outputs have one, or a"
                " train_step of your own"
            )
        return {"loss": loss}

    # ---- One batch

    def _region(self):
        if self._autocast_dtype is None:
            return contextlib.nullcontext()
        return autocast("cpu", dtype=self._autocast_dtype)

    def _backward(self, loss):
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        loss.backward()

    def _apply(self, optimizer):
        """Clips the gradients of an optimizer's parameters, takes its step and forgets them."""
        scaler = self.scaler
        if self.clip_norm is not None or self.clip_value is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            params = [p for group in optimizer.param_groups for p in group["params"]]
            if self.clip_value is not None:
                clip_grad_value_(params, self.clip_value)
            if self.clip_norm is not None:
                clip_grad_norm_(params, self.clip_norm)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
        optimizer.zero_grad()

    def minimize(self, loss: Tensor, optimizer: Optimizer | None = None) -> None:
        """For a train_step of one's own: one step of an optimizer (the first) down a loss."""
        optimizer = self.optimizer if optimizer is None else optimizer
        self._check_finite(loss.item())
        with autocast("cpu", enabled=False) if self._autocast_dtype else contextlib.nullcontext():
            optimizer.zero_grad()
            self._backward(loss)
            self._apply(optimizer)
        self._minimized = True

    def _take_steps(self, own):
        """All optimizers' steps, unless the train_step took its own; then what follows a step."""
        self._wait_copied()
        if not own:
            for optimizer in self.optimizers:
                self._apply(optimizer)
        if self.scaler is not None and (not own or self._minimized):
            self.scaler.update()
        self._minimized = False
        if self.ema is not None:
            self.ema.update_parameters(self.model)
        for schedule in self._step_schedules:
            schedule.scheduler.step()

    def _check_finite(self, value):
        if not math.isfinite(value):
            where = f" in epoch {self.epoch + 1}, batch {self.batch + 1}"
            raise errors.ValueError(
                f"Learner: the loss is no finite number any more; got {value}{where}; expected a"
                " smaller learning rate, clip_norm=, or data without such numbers"
            )
