"""When checkpoints are written, and which are kept."""

from __future__ import annotations

import time

from .. import errors
from .callbacks import check_mode

__all__ = ["Checkpoints"]


class Checkpoints:
    """When a run's state is written, and what stays.

    every_steps, every_epochs, every_minutes: whichever come; None: not by this. keep_last: so many
    of the latest stay; keep_best: beside them so many of the best by `metric`, in `mode` "min" or
    "max". A checkpoint is written by a thread of its own from a copy. overlap: that thread makes
    the copy, too, while the next step computes its gradients; a step waits for it. Where something
    besides the optimizers' steps writes into weights meanwhile, the copy is given up, a line says
    so, and from then on each copy is made before the run goes on, as without overlap.

    >>> kiln.train.Checkpoints(every_epochs=2).every_epochs
    2
    """

    def __init__(
        self,
        every_steps: int | None = None,
        every_epochs: int | None = 1,
        every_minutes: float | None = 10,
        keep_last: int | None = 2,
        keep_best: int | None = 1,
        metric: str = "valid/loss",
        mode: str = "min",
        overlap: bool = True,
    ) -> None:
        check_mode("Checkpoints", mode)
        for name, value in (("every_steps", every_steps), ("every_epochs", every_epochs)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise errors.ValueError(
                    f"Checkpoints: {name} must be an integer >= 1 or None; got {value!r}"
                )
        if every_minutes is not None and not every_minutes > 0:
            raise errors.ValueError(
                f"Checkpoints: every_minutes must be > 0 or None; got {every_minutes!r}"
            )
        for name, value, least in (("keep_last", keep_last, 1), ("keep_best", keep_best, 0)):
            if not isinstance(value, int) or value < least:
                raise errors.ValueError(
                    f"Checkpoints: {name} must be an integer >= {least}; got {value!r}"
                )
        self.every_steps = every_steps
        self.every_epochs = every_epochs
        self.every_minutes = every_minutes
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.metric = metric
        self.mode = mode
        self.overlap = bool(overlap)


class Clock:
    """Whether a checkpoint is due after a step. Counts time by a clock that nobody sets."""

    def __init__(self, plan: Checkpoints) -> None:
        self.steps = plan.every_steps
        self.seconds = None if plan.every_minutes is None else 60.0 * plan.every_minutes
        self.is_late = False  # one was due while another was being written
        self.restart()

    def restart(self) -> None:
        """A checkpoint was written: counts from here on."""
        self.last = time.monotonic()
        self.is_late = False

    def is_due(self, step: int) -> bool:
        """Whether a checkpoint is due after this step."""
        if self.is_late or (self.steps is not None and step % self.steps == 0):
            return True
        return self.seconds is not None and time.monotonic() - self.last >= self.seconds
