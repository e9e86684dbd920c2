"""What may happen at each event of a run, and stopping early."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .learner import Learner

__all__ = ["Callback", "EarlyStopping"]

EVENTS = (
    "fit_start", "epoch_start", "batch_start", "batch_end", "step_end", "validate_start",
    "validate_batch_end", "validate_end", "epoch_end", "checkpoint", "interrupt", "exception",
    "fit_end",
)  # fmt: skip


class Callback:
    """Override what is to happen at an event; each method gets the learner first.

    What state_dict() gives is kept in checkpoints and comes back through load_state_dict().

    >>> class Say(kiln.train.Callback):
    ...     def epoch_end(self, learner, *_):
    ...         print("an epoch is over")
    """

    def fit_start(self, learner: Learner) -> None:
        """Before the first batch, after a resumed run was loaded."""

    def epoch_start(self, learner: Learner) -> None:
        """Before the first batch of an epoch, or before the batch at which it is continued."""

    def batch_start(self, learner: Learner, batch: Any) -> None:
        """Before a batch is trained on."""

    def batch_end(self, learner: Learner, batch: Any, loss: float | None) -> None:
        """After its backward pass; loss: a float, or None of a step of one's own."""

    def step_end(self, learner: Learner) -> None:
        """After a step of the optimizers."""

    def validate_start(self, learner: Learner, split: str) -> None:
        """Before a split is measured."""

    def validate_batch_end(self, learner: Learner, split: str, batch: Any, result: Any) -> None:
        """After each of its batches, with what valid_step returned."""

    def validate_end(self, learner: Learner, split: str, values: dict[str, float]) -> None:
        """With what was measured, by name."""

    def epoch_end(self, learner: Learner, values: dict[str, float]) -> None:
        """With all that was measured in the epoch, by name ("train/loss", "valid/loss")."""

    def checkpoint(self, learner: Learner) -> None:
        """After the state was copied; it is written in the background."""

    def interrupt(self, learner: Learner, signal: int) -> None:
        """After Ctrl-C, before the state is saved."""

    def exception(self, learner: Learner, error: BaseException) -> None:
        """Before an exception leaves fit()."""

    def fit_end(self, learner: Learner) -> None:
        """After the last epoch."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: numbers, texts, tensors, and containers of them."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes it back."""


class Function(Callback):
    """A function as a callback of one event."""

    def __init__(self, event: str, function: Callable[..., Any]) -> None:
        setattr(self, event, function)


def handlers_of(callbacks: Iterable[Callback], event: str) -> list[Callable[..., Any]]:
    """The methods that are to be called at an event."""
    found = []
    for callback in callbacks:
        method = getattr(callback, event, None)
        if method is not None and getattr(method, "__func__", None) is not getattr(Callback, event):
            found.append(method)
    return found


def check_mode(op: str, mode: str) -> None:
    """Raises ValueError unless mode is "min" or "max"."""
    if mode not in ("min", "max"):
        raise errors.ValueError(f"{op}: mode must be 'min' or 'max'; got {mode!r}")


class EarlyStopping(Callback):
    """Ends a run when a metric has got no better for `patience` epochs.

    metric: its name, such as "valid/loss". mode: "min" or "max", what better means. min_delta:
    better by more than this.

    >>> stop = kiln.train.EarlyStopping(metric="valid/loss", patience=2)
    >>> stop.patience
    2
    """

    def __init__(
        self,
        metric: str = "valid/loss",
        patience: int = 3,
        mode: str = "min",
        min_delta: float = 0.0,
    ) -> None:
        check_mode("EarlyStopping", mode)
        if not isinstance(patience, int) or patience < 0:
            raise errors.ValueError(
                f"EarlyStopping: patience must be an integer >= 0; got {patience!r}"
            )
        self.metric = metric
        self.patience = patience
        self.mode = mode
        self.min_delta = min_delta
        self.best = math.inf if mode == "min" else -math.inf
        self.epochs_without = 0

    def epoch_end(self, learner: Learner, values: dict[str, float]) -> None:
        """Looks at the metric, and stops the learner when it is time."""
        if self.metric not in values:
            raise errors.KeyError(
                f"EarlyStopping: there is no metric {self.metric!r}; got {', '.join(sorted(values))}"
            )
        value = values[self.metric]
        gain = self.best - value if self.mode == "min" else value - self.best
        if gain > self.min_delta:
            self.best = value
            self.epochs_without = 0
            return
        self.epochs_without += 1
        if self.epochs_without > self.patience:
            learner.stop(
                f"{self.metric} was not better than {self.best:.6g} for {self.epochs_without} epochs"
            )

    def state_dict(self) -> dict[str, Any]:
        """What it has seen."""
        return {"best": self.best, "epochs_without": self.epochs_without}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what state_dict() gave."""
        self.best = state["best"]
        self.epochs_without = state["epochs_without"]
