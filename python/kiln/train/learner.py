"""Learner: the loop that trains, measures, keeps and shows."""

from __future__ import annotations

import array
import contextlib
import math
import time
from typing import TYPE_CHECKING

from .. import _C, errors
from .._C import _train
from ..nn.module import Module
from ..nn.module_cast import _C_no_grad
from .callbacks import EVENTS, Callback, Function, handlers_of
from .checkpoints import Checkpoints
from .finder import Finder
from .history import History
from .keeping import Keeping
from .losses import loss_of
from .position import (
    batch_size,
    batches_from,
    generators_of,
    length_of,
    random_state,
    seed_everything,
    set_epoch,
    set_random_state,
)
from .running import Aside, Means, computed, metrics_of
from .schedules import schedules_of
from .showing import Showing
from .steps import Steps, optimizers_of
from .team import team_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .._C import Tensor, dtype
    from .._typing import StrPath
    from ..amp.grad_scaler import GradScaler
    from ..optim._schedule import LRScheduler
    from ..optim.optimizer import Optimizer
    from .schedules import Schedule

__all__ = ["Interrupted", "Learner"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came, and the run is saved.

    >>> issubclass(kiln.train.Interrupted, BaseException)
    True
    """


class _Interruption(Exception):
    """Between the loops: Ctrl-C came while a split was measured."""


class Learner(Steps, Keeping, Showing, Finder):
    """Trains a model: Learner(model, optimizer, loss="classification").fit(train, valid, epochs=3).

    loss: a function of (outputs, targets), or "classification", "multilabel", "regression",
    "sequence"; None: the model's outputs have a loss, or train_step is overridden. metrics: objects
    with update(outputs, targets), compute, reset, state_dict, load_state_dict and a name; the word
    "accuracy". scheduler: a schedule that counts epochs, a Schedule, or a list of them.

    accumulate: batches for one step. clip_norm, clip_value: of the gradients. precision: "bf16" or
    "f16" (with loss scaling). ema: the decay of an average of the weights, which is what is
    measured. on_nan: "raise", or "skip" to leave a batch out whose loss is no finite number.

    folder: where logs, the report and checkpoints go; None: nowhere. checkpoints: when; see
    Checkpoints. log_every: steps between two lines of the logs. progress: "auto", "bar", "plain",
    "quiet"; "dashboard": the whole terminal, where there is one; "notebook": one display with plots,
    which "auto" is in a notebook, too. seed: of all random numbers of a run. extra_state: objects by
    name with state_dict() and load_state_dict(), kept in checkpoints.

    A model in nn.parallel.DistributedDataParallel is trained by all processes of its group, each with
    its part of the data: what is measured is of all of them, and the first one shows, logs and keeps.

    >>> net = nn.Linear(1, 1)
    >>> learner = kiln.train.Learner(net, kiln.optim.SGD(net.parameters(), lr=0.1), loss="regression",
    ...                              progress="quiet")
    >>> batches = [(kiln.ones(2, 1), kiln.ones(2, 1))]
    >>> _ = learner.fit(batches, epochs=2)
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer | Sequence[Optimizer] | Mapping[str, Optimizer] | None = None,
        *,
        loss: str | Callable[..., Tensor] | None = None,
        metrics: Any = (),
        scheduler: LRScheduler | Schedule | Sequence[LRScheduler | Schedule] | None = None,
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        precision: str | dtype | None = None,
        scaler: GradScaler | None = None,
        ema: float | None = None,
        callbacks: Iterable[Callback] = (),
        on_nan: str = "raise",
        folder: StrPath | None = None,
        checkpoints: Checkpoints | None = None,
        tensorboard: bool = True,
        log_every: int = 50,
        progress: Any = "auto",
        seed: int | None = None,
        extra_state: Mapping[str, Any] | None = None,
        title: str | None = None,
    ) -> None:
        if not isinstance(model, Module):
            raise errors.TypeError(f"Learner: model must be a Module; got {type(model).__name__}")
        if on_nan not in ("raise", "skip"):
            raise errors.ValueError(f"Learner: on_nan must be 'raise' or 'skip'; got {on_nan!r}")
        if not isinstance(log_every, int) or log_every < 1:
            raise errors.ValueError(
                f"Learner: log_every must be an integer >= 1; got {log_every!r}"
            )
        if checkpoints is not None and folder is None:
            raise errors.ValueError("Learner: checkpoints need a folder; got folder=None")
        self.model: Any = model
        self._team = team_of(model)
        if self._team is not None and not self._team.is_main:
            progress = "quiet"
        self.optimizers = optimizers_of(optimizer)
        self.optimizer = self.optimizers[0] if self.optimizers else None
        self.loss = loss_of(loss)
        self.metrics = metrics_of(metrics)
        self.schedules = schedules_of(scheduler)
        self._step_schedules = [s for s in self.schedules if s.per == "step"]
        self._init_steps(accumulate, clip_norm, clip_value, precision, scaler, ema)
        self.callbacks = list(callbacks)
        self.on_nan = on_nan
        self.seed = seed
        self.extra_state = dict(extra_state or {})
        self._init_keeping(folder, checkpoints or Checkpoints())
        self._init_showing(title or type(model).__name__, tensorboard, log_every, progress)
        # Where the run stands: epochs over, batches of the present one, steps, batches left out.
        self.epoch = self.batch = self.step = self.skipped = 0
        self.seconds = 0.0
        self.history = History()  # of each epoch, what was measured, by name
        self.step_loss = array.array("d")
        self.values: dict[str, float] = {}  # the newest of each number that was measured
        self._running = Means()
        self._own = Means() if self._team else self._running  # of this process and step
        self._epoch_random = self._resume_random = None
        self._generators: list[Any] = []
        self._stop_reason = None
        self._interrupt = None

    # ---- Callbacks

    def on(self, event: str, function: Callable[..., Any] | None = None) -> Any:
        """Calls function(learner, ...) at an event of Callback's; a decorator without a function."""
        if event not in EVENTS:
            raise errors.ValueError(
                f"Learner.on: unknown event {event!r}; expected one of {', '.join(EVENTS)}"
            )
        if function is None:
            return lambda f: self.on(event, f)
        self.callbacks.append(Function(event, function))
        return function

    def stop(self, reason: str = "stop() was called") -> None:
        """Ends fit() after this step."""
        self._stop_reason = reason

    def _tell(self, event, *args):
        for handler in self._handlers[event]:
            handler(self, *args)

    # ---- The run

    def fit(  # type: ignore[return]  # _end_interrupted() raises
        self,
        train: Iterable[Any],
        valid: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        *,
        epochs: int | None = None,
        steps: int | None = None,
        resume: bool = False,
        sanity_check: bool = True,
    ) -> History:
        """Trains until so many epochs or steps are over, all runs into one counted.

        train: a loader, or any iterable of batches. valid: a loader, or a dict of several by name;
        they are measured after each epoch. resume: goes on from the newest checkpoint in the
        folder, if there is one, in the middle of an epoch where it was. sanity_check: measures one
        batch of each split first. Returns the history, a list with a dict for each epoch.

        Raises Interrupted, a KeyboardInterrupt, after Ctrl-C: the step is finished and the state
        saved then. A second Ctrl-C ends the program at once.
        """
        if (epochs is None) == (steps is None):
            raise errors.ValueError(
                f"Learner.fit: expected epochs or steps; got epochs={epochs} and steps={steps}"
            )
        limit = epochs if steps is None else steps
        if not isinstance(limit, int) or limit < 0:
            raise errors.ValueError(
                f"Learner.fit: epochs and steps are integers >= 0; got {limit!r}"
            )
        splits = valid if isinstance(valid, dict) else {} if valid is None else {"valid": valid}
        self._generators = generators_of(train, *splits.values())
        self._handlers = {e: handlers_of(self.callbacks, e) for e in EVENTS}
        self._stop_reason = None
        loaded = self._open_for_all(resume, train, splits) or self._resume_random is not None
        if self.seed is not None and not loaded and self.step == 0:
            seed_everything(self.seed)
        with self._viewed():
            self._interrupt = self._watch()
            try:
                if sanity_check and not loaded:
                    self._check_splits(splits)
                self._open_dashboard(train)
                self._introduce(train, epochs, steps)
                self._tell("fit_start")
                self._epochs(train, splits, epochs, steps)
                self._finish()
                self._tell("fit_end")
                return self.history
            except _Interruption:
                self._end_interrupted()
            except Exception as error:
                self._end_failed(error)
                raise
            finally:
                self._progress.finish()
                self._close_dashboard()
                if self._interrupt is not None:
                    self._interrupt.close()
                self._interrupt = None

    def _epochs(self, train, splits, epochs, steps):
        while self._stop_reason is None and not self._is_over(epochs, steps):
            total = length_of(train)
            self._begin_epoch(train, total, epochs, steps)
            started = time.monotonic()
            try:
                whole = self._train_epoch(train, total, steps)
            finally:
                self.seconds += time.monotonic() - started
            if self._was_interrupted():
                raise _Interruption
            if whole or self._stop_reason is None:
                self._end_epoch(splits)

    def _is_over(self, epochs, steps):
        return self.epoch >= epochs if steps is None else self.step >= steps

    def _interrupted_here(self):
        if self._dashboard_stops:
            return True
        return self._interrupt is not None and self._interrupt.signal != 0

    def _was_interrupted(self):
        here = self._interrupted_here()
        return here if self._team is None else self._team.any(here)

    def _was_stopped(self):
        """Whether stop() was called, in any process."""
        if self._team is not None and self._team.any(self._stop_reason is not None):
            self._stop_reason = self._stop_reason or "another process called stop()"
        return self._stop_reason is not None

    def _begin_epoch(self, train, total, epochs, steps):
        if self.batch == 0:
            if self._resume_random is not None:
                set_random_state(self._resume_random, self._generators)
                self._resume_random = None
            self._epoch_random = random_state(self._generators)
            for metric in self.metrics.values():
                metric.reset()
        elif self._resume_random is None:
            raise errors.RuntimeError(
                "Learner.fit: an epoch was left in its middle; make a new Learner, and"
                " resume=True to go on from a checkpoint"
            )
        else:
            set_random_state(self._epoch_random, self._generators)
        self._show_epoch(total, epochs, steps)
        self.model.train()
        self._tell("epoch_start")

    def _train_epoch(self, train, total, steps):
        """Whether the epoch came to its end."""
        set_epoch(train, self.epoch)
        batches = batches_from(train, self.batch)
        if self._team is not None:
            batches = self._team.batches(self, batches)
        if self._resume_random is not None:
            set_random_state(self._resume_random, self._generators)
            self._resume_random = None
        on_start, on_end = self._handlers["batch_start"], self._handlers["batch_end"]
        on_step = self._handlers["step_end"]
        accumulate, running, metrics = self.accumulate, self._own, self.metrics
        team = self._team
        reduced = self._autocast_dtype
        region = self._region()
        in_group = 0  # batches since the last step
        group_loss = 0.0
        share = accumulate
        if total is not None and accumulate > 1:
            share = min(accumulate, total - self.batch)
        for batch in batches:
            for handler in on_start:
                handler(self, batch)
            if reduced is None:
                result = self.train_step(batch)
            else:
                with region:
                    result = self.train_step(batch)
            loss, fields = _parts(result)
            count = batch_size(batch)
            value = None
            if loss is not None:
                value = loss.item()
                if self._is_bad(value):
                    self._leave_out(value)
                    continue
                self._backward(loss if share == 1 else loss / share)
                running.add("loss", value, count)
                group_loss += value
            if fields is not None:
                self._add_fields(fields, count, metrics)
            self.batch += 1
            in_group += 1
            for handler in on_end:
                handler(self, batch, value)
            if in_group < share and loss is not None:
                continue
            self._take_steps(loss is None)
            if value is not None:
                mean = group_loss / in_group
                self.step_loss.append(mean if team is None else team.mean(mean))
            if team is not None:
                self._take_own()
            self.step += 1
            in_group, group_loss = 0, 0.0
            if total is not None and accumulate > 1:
                share = min(accumulate, max(total - self.batch, 1))
            for handler in on_step:
                handler(self)
            if self._progress.advance(count * share):
                self._show_step()
            if self._dashboard is not None:
                self._poll_dashboard()
            if self.step % self.log_every == 0:
                self._log_step()
            if self._clock is not None and self._clock.is_due(self.step):
                self._save()
            if self._was_interrupted() or self._was_stopped():
                return False
            if steps is not None and self.step >= steps:
                return total is not None and self.batch >= total
        if in_group:  # of a loader that does not know its length
            self._take_steps(False)
            mean = group_loss / in_group
            self.step_loss.append(mean if team is None else team.mean(mean))
            if team is not None:
                self._take_own()
            self.step += 1
        return True

    def _take_own(self):
        """After each step all processes have the sums of all, so that a checkpoint is whole."""
        self._team.add_means(self._own)
        for name, (total, weight) in self._own.sums.items():
            self._running.add_sum(name, total, weight)
        self._own.sums.clear()

    def _is_bad(self, value):
        """Whether a batch is left out: in all processes, if in any."""
        bad = not math.isfinite(value)
        if self._team is None or self.on_nan == "raise":
            return bad
        return self._team.any(bad)

    def _leave_out(self, value):
        """A batch whose loss is no finite number."""
        if self.on_nan == "raise":
            self._check_finite(value)
        self.batch += 1
        self.skipped += 1
        self._in_a_row = self._in_a_row + 1 if self._last_skipped == self.step else 1
        self._last_skipped = self.step
        self._note("skipped", f"epoch {self.epoch + 1}, batch {self.batch}: the loss is {value}")
        if self._in_a_row > 100:
            raise errors.ValueError(
                f"Learner: the loss of {self._in_a_row} batches one after another is no finite number;"
                " expected some that are"
            )

    _in_a_row = 0
    _last_skipped = -1

    def _add_fields(self, fields, count, metrics):
        outputs = fields.get("outputs")
        if metrics and outputs is not None:
            with _C_no_grad():
                outputs = outputs.detach() if isinstance(outputs, _C.Tensor) else outputs
                self._update_metrics(outputs, fields["targets"])
        for name, value in fields.items():
            if name in ("loss", "outputs", "targets"):
                continue
            number = value.item() if isinstance(value, _C.Tensor) else value
            self._own.add(name, number, count)

    def _update_metrics(self, outputs, targets):
        if self._team is not None and self.metrics:
            outputs, targets = self._team.rows((outputs, targets))
        for metric in self.metrics.values():
            metric.update(outputs, targets)

    def _end_epoch(self, splits):
        """Measures, counts, logs and keeps."""
        values = {
            f"train/{k}": v for k, v in {**self._running.values(), **computed(self.metrics)}.items()
        }
        before = random_state(self._generators)
        started = time.monotonic()
        try:
            for split, loader in splits.items():
                values.update(self._measure(loader, split))
        except _Interruption:
            # As if measuring had not begun: it begins again when the run goes on.
            set_random_state(before, self._generators)
            raise
        finally:
            self.seconds += time.monotonic() - started
        for schedule in self.schedules:
            if schedule.per == "epoch":
                schedule.epoch_end(values)
        if self.optimizers:
            values["lr"] = float(self.optimizer.param_groups[0]["lr"])
        values["seconds"] = self.seconds
        self.epoch += 1
        self.batch = 0
        self.seconds = 0.0
        self._running.sums.clear()
        self.values.update(values)
        self.history.append({"epoch": self.epoch, **values})
        self._tell("epoch_end", values)
        self._show_epoch_end(values)
        for metric in self.metrics.values():
            metric.reset()
        self._save_epoch(values)

    # ---- Measuring

    def evaluate(
        self, data: Iterable[Any] | Mapping[str, Iterable[Any]], split: str = "test"
    ) -> dict[str, float]:
        """What the loss and the metrics are over a loader, or over each of a dict of them."""
        if not isinstance(data, dict):
            data = {split: data}
        self._handlers = {e: handlers_of(self.callbacks, e) for e in EVENTS}
        values = {}
        for name, loader in data.items():
            values.update(self._measure(loader, name))
        return values

    @contextlib.contextmanager
    def _measuring(self):
        """In eval mode, without gradients, with the averaged weights where there are some."""
        model = self.model
        if self.ema is not None and int(self.ema.n_averaged) > 0:
            self.model = self.ema.module
        modes = [(m, m.training) for m in self.model.modules()]
        self.model.eval()
        try:
            with _C_no_grad(), self._region(), Aside(self.metrics):
                yield
        finally:
            for module, training in modes:
                module.training = training
            self.model = model

    def _measure(self, loader, split, most=None):
        means = Means()
        self._tell("validate_start", split)
        with self._measuring():
            for i, batch in enumerate(loader):
                if i == most:
                    break
                self._poll_dashboard()
                if self._view is not None:
                    self._view.measuring(split)
                if self._was_interrupted():
                    raise _Interruption
                result = self.valid_step(batch)
                loss, fields = _parts(result)
                count = batch_size(batch)
                if loss is not None:
                    means.add("loss", loss.item(), count)
                for name, value in (fields or {}).items():
                    if name == "outputs":
                        self._update_metrics(value, fields["targets"])
                    elif name not in ("loss", "targets"):
                        means.add(
                            name, value.item() if isinstance(value, _C.Tensor) else value, count
                        )
                for handler in self._handlers["validate_batch_end"]:
                    handler(self, split, batch, result)
            if self._team is not None:
                self._team.add_means(means)
            values = {
                f"{split}/{k}": v for k, v in {**means.values(), **computed(self.metrics)}.items()
            }
        self._tell("validate_end", split, values)
        return values

    def predict(self, data: Iterable[Any]) -> Tensor:
        """The outputs for a loader's batches, joined along the first dim."""
        outputs = []
        with self._measuring():
            for batch in data:
                outputs.append(self.forward(batch)[0])
        return _C.cat(outputs)

    def _check_splits(self, splits):
        """One batch of each split, so that what cannot be measured is known before it costs hours."""
        if not splits:
            return
        before = random_state(self._generators)
        handlers, self._handlers = self._handlers, {e: [] for e in EVENTS}
        try:
            for split, loader in splits.items():
                self._measure(loader, split, most=1)
        except _Interruption:
            raise
        except Exception as error:
            error.add_note(f"This came up when one batch of {split!r} was tried before the run.")
            raise
        finally:
            self._handlers = handlers
            set_random_state(before, self._generators)


def _parts(result):
    """(loss, fields) of what a step returned."""
    if isinstance(result, _C.Tensor):
        return result, None
    if result is None:
        return None, None
    if isinstance(result, dict):
        return result.get("loss"), result
    raise errors.TypeError(
        f"Learner: a step must return a loss, a dict or None; got {type(result).__name__}"
    )
