"""When a learning rate schedule takes its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from ..optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Schedule"]


class Schedule:
    """A learning rate schedule with what it counts: per="step" or per="epoch".

    metric: what ReduceLROnPlateau is given at the end of an epoch.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> rate = kiln.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    >>> kiln.train.Schedule(rate, per="step").per
    'step'
    """

    def __init__(
        self, scheduler: LRScheduler, per: str = "epoch", metric: str | None = None
    ) -> None:
        if per not in ("step", "epoch"):
            raise errors.ValueError(f"Schedule: per must be 'step' or 'epoch'; got {per!r}")
        if not isinstance(scheduler, (LRScheduler, ReduceLROnPlateau)):
            raise errors.TypeError(
                f"Schedule: expected a schedule of kiln.optim.lr_scheduler; got"
                f" {type(scheduler).__name__}"
            )
        if isinstance(scheduler, ReduceLROnPlateau):
            metric = metric or "valid/loss"
            if per == "step":
                raise errors.ValueError("Schedule: ReduceLROnPlateau counts epochs; got per='step'")
        self.scheduler = scheduler
        self.per = per
        self.metric = metric

    def epoch_end(self, values: dict[str, float]) -> None:
        """Goes on by one epoch, if it counts epochs."""
        if self.metric is None:
            self.scheduler.step()
            return
        if self.metric not in values:
            raise errors.KeyError(
                f"Schedule: there is no metric {self.metric!r}; got {', '.join(sorted(values))}"
            )
        self.scheduler.step(values[self.metric])


def schedules_of(given: Any) -> list[Schedule]:
    """A schedule, a Schedule, or a list of either, as a list of Schedule."""
    if given is None:
        return []
    items = given if isinstance(given, (list, tuple)) else [given]
    return [item if isinstance(item, Schedule) else Schedule(item) for item in items]
