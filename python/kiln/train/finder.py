"""What to know before a run: a learning rate, and whether the model can learn a batch by heart."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import math
from typing import TYPE_CHECKING, Any

from .. import _C, errors
from .position import generators_of, random_state, set_random_state

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Finder", "LearningRates"]


@dataclasses.dataclass
class LearningRates:
    """rates, the smoothed losses at them, and the rate at which the loss fell fastest (or None).

    >>> kiln.train.LearningRates([0.1, 0.2], [2., 1.], 0.1).rates
    [0.1, 0.2]
    """

    rates: list[float]
    losses: list[float]
    suggestion: float | None


class Finder:
    """A Learner's trials. Part of Learner."""

    optimizers: list[Any]

    @contextlib.contextmanager
    def _on_trial(self, *loaders):
        """Steps inside leave no trace."""
        generators = generators_of(*loaders)
        before = random_state(generators)
        model = copy.deepcopy(self.model.state_dict())
        optimizers = [copy.deepcopy(o.state_dict()) for o in self.optimizers]
        scaler = None if self.scaler is None else self.scaler.state_dict()
        ema, self.ema = self.ema, None
        schedules, self._step_schedules = self._step_schedules, []
        training = self.model.training
        self.model.train()
        try:
            yield
        finally:
            self.model.load_state_dict(model)
            for optimizer, state in zip(self.optimizers, optimizers):
                optimizer.load_state_dict(state)
                optimizer.zero_grad()
            if scaler is not None:
                self.scaler.load_state_dict(scaler)
            self.ema, self._step_schedules = ema, schedules
            self.model.train(training)
            set_random_state(before, generators)

    def _trial_step(self, batch):
        from .learner import _parts

        with self._region():
            loss, fields = _parts(self.train_step(batch))
        if loss is None:
            self._take_steps(True)
            numbers = [v for v in (fields or {}).values() if isinstance(v, (float, _C.Tensor))]
            if not numbers:
                raise errors.ValueError(
                    "Learner: a trial needs a number that falls; expected a train_step that returns one"
                )
            first = numbers[0]
            return first.item() if isinstance(first, _C.Tensor) else first
        value = loss.item()
        if math.isfinite(value):
            self._backward(loss)
            self._take_steps(False)
        return value

    def find_lr(
        self,
        train: Iterable[Any],
        start: float = 1e-7,
        end: float = 1.0,
        steps: int = 100,
        smoothing: float = 0.95,
    ) -> LearningRates:
        """Losses while the rate grows from start to end in so many steps; nothing is changed by it.

        It ends early when the loss is four times the smallest. A rate for training is the
        suggestion or somewhat more (Smith, 2017).
        """
        if not 0 < start < end or not isinstance(steps, int) or steps < 2:
            raise errors.ValueError(
                f"Learner.find_lr: expected 0 < start < end and steps >= 2; got {start}, {end}, {steps}"
            )
        rates, losses = [], []
        mean = weight = 0.0
        with self._on_trial(train):
            for i, batch in enumerate(itertools.islice(_again(train), steps)):
                rate = start * (end / start) ** (i / (steps - 1))
                for optimizer in self.optimizers:
                    for group in optimizer.param_groups:
                        group["lr"] = rate
                value = self._trial_step(batch)
                if not math.isfinite(value):
                    break
                mean = smoothing * mean + (1 - smoothing) * value
                weight = smoothing * weight + (1 - smoothing)
                rates.append(rate)
                losses.append(mean / weight)
                if losses[-1] > 4 * min(losses):
                    break
        falls = [losses[i + 1] - losses[i] for i in range(len(losses) - 1)]
        steepest = min(range(len(falls)), key=falls.__getitem__, default=None)
        suggestion = None if steepest is None or falls[steepest] >= 0 else rates[steepest]
        return LearningRates(rates, losses, suggestion)

    def overfit(self, batch: Any, steps: int = 100) -> list[float]:
        """The losses of so many steps on one batch, with everything as before afterwards.

        A model that cannot learn one batch by heart learns nothing from many.
        """
        with self._on_trial():
            return [self._trial_step(batch) for _ in range(steps)]


def _again(loader):
    """Epoch after epoch."""
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            return
