"""What a run shows: progress, logs, the report."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import time
import warnings
from typing import TYPE_CHECKING

from .. import _C, errors
from .._C import _train
from .notebook import NotebookView, in_kernel, running_shell
from .pictures import text_of
from .position import length_of

if TYPE_CHECKING:
    from typing import Any

    from .._C._train import EventFile


STYLES = ("auto", "bar", "plain", "quiet", "dashboard", "notebook")


class Showing:
    """A Learner's progress, logs and report. Part of Learner."""

    def _init_showing(self, title, tensorboard, log_every, style):
        self.title = title
        self._tensorboard = bool(tensorboard)
        self.log_every = log_every
        # Where there is no terminal to draw on, plain lines stand for a dashboard.
        self._wants_dashboard = style == "dashboard"
        self._dashboard = None
        if isinstance(style, str) and style not in STYLES:
            known = ", ".join(repr(s) for s in STYLES)
            raise errors.ValueError(f"Learner: progress must be one of {known}; got {style!r}")
        # In a notebook a terminal is never there; "notebook" where nothing can show it is "auto".
        shown = (style in ("auto", "dashboard") and in_kernel()) or (
            style == "notebook" and running_shell() is not None
        )
        self._view = NotebookView() if shown else None
        plain = "auto" if style in ("dashboard", "notebook") else style
        self._progress: Any = self._view or _train.Progress(plain)
        self._log_failed = False
        self._reported = 0.0
        self._logged = (0.0, 0)  # when, and of which step, the last line of the log was

    @contextlib.contextmanager
    def _viewed(self):
        """While a run is shown in a notebook, if it is one; also how it ends."""
        if self._view is None:
            yield
            return
        self._view.open(self)
        try:
            yield
        except BaseException as error:
            self._view.close(error)
            raise
        self._view.close(None)

    def _open_dashboard(self, train):
        if not self._wants_dashboard or self._view is not None or not _train._has_screen():
            return
        batches = length_of(train)
        self._dashboard = _train._Dashboard(
            self, self._progress, self.title, [str(name) for name in self.metrics],
            max(1, -(-(batches or 1) // self.accumulate)), self._interrupted_here,
        )  # fmt: skip

    def _poll_dashboard(self):
        if self._dashboard is not None and self._dashboard.poll():
            self._dashboard_stops = True

    def _close_dashboard(self):
        if self._dashboard is not None:
            self._dashboard.close()
            self._dashboard = None
            self._dashboard_stops = False

    _dashboard_stops = False

    def _save_soon(self):
        if self._clock is not None:
            self._clock.is_late = True

    def _introduce(self, train, epochs, steps):
        parameters = sum(p.numel() for p in self.model.parameters())
        batches = length_of(train)
        size = "" if batches is None else f", {batches:,} batches an epoch"
        goal = f"{epochs} epochs" if steps is None else f"{steps:,} steps"
        self._progress.print(f"{self.title}: {parameters:,} parameters{size}, {goal}")
        if self._resumed_from is not None:
            self._note(
                "resume",
                f"Going on from {self._resumed_from} in epoch {self.epoch + 1} after batch {self.batch}"
                f" (step {self.step:,})",
            )

    def _show_epoch(self, total, epochs, steps):
        label = f"epoch {self.epoch + 1}" + ("" if epochs is None else f"/{epochs}")
        later = 0
        if total is not None and epochs is not None:
            later = (epochs - self.epoch - 1) * total
        if total is not None and steps is not None:
            left = (steps - self.step) * self.accumulate
            later = max(left - total + self.batch, 0)
            total = min(total, self.batch + left)
        # A Progress counts steps, the view in a notebook batches.
        one = self.accumulate if self._view is None else 1
        self._progress.start(label, -(-(total or 0) // one), self.batch // one, -(-later // one))
        self._logged = (time.monotonic(), self.step)

    def _show_step(self):
        shown = self._running.values()
        self._progress.show({name: text_of(name, value) for name, value in shown.items()})

    def _show_epoch_end(self, values):
        shown = {k: v for k, v in values.items() if k not in ("seconds", "lr")}
        texts = "  ".join(f"{k} {text_of(k, v)}" for k, v in shown.items())
        self._progress.finish()
        seconds = _train.format_duration(values["seconds"])
        if self._view is not None:
            self._view.epoch_end()
        else:
            self._progress.print(f"epoch {self.epoch}  {texts}  {seconds}")
        self._write("epoch", values)
        if time.monotonic() - self._reported > 10:
            self._write_report()

    def _note(self, event, text):
        """A line for the reader and for the log."""
        self._progress.print(text)
        if self._log is not None:
            self._guarded(lambda: self._log.note(event, self.epoch, self.step, text))

    # ---- Logs

    def _log_step(self):
        now = time.monotonic()
        since, step = self._logged
        self._logged = (now, self.step)
        if self._log is None:
            return
        values = {f"train/{name}": value for name, value in self._running.values().items()}
        if self.step_loss:
            values["train/step_loss"] = self.step_loss[-1]
        if self.optimizers:
            values["lr"] = float(self.optimizer.param_groups[0]["lr"])
        if now > since:
            values["steps_per_second"] = (self.step - step) / (now - since)
        self._write("step", values)

    def _write(self, event, values):
        if self._log is not None:
            self._guarded(lambda: self._log.numbers(event, self.epoch, self.step, values))

    def _guarded(self, write):
        """A log that cannot grow must not end a run; it is said once."""
        try:
            write()
            self._log_failed = False
        except errors.IoError as error:
            if not self._log_failed:
                warnings.warn(f"Learner: {error}; training goes on", stacklevel=2)
            self._log_failed = True

    @property
    def events(self) -> EventFile | None:
        """The run's EventFile, for histograms, images and texts of one's own; None without one."""
        log: Any = getattr(self, "_log")
        return None if log is None else log.events

    # ---- The report

    def _write_report(self):
        if self.folder is None:
            return
        self._reported = time.monotonic()
        config = {
            "Epochs": self.epoch,
            "Steps": f"{self.step:,}",
            "Optimizer": ", ".join(type(o).__name__ for o in self.optimizers) or "its own",
            "Parameters": f"{sum(p.numel() for p in self.model.parameters()):,}",
            "Batches for a step": self.accumulate,
            "Seed": "not set" if self.seed is None else self.seed,
        }
        machine = {
            "Machine": platform.machine(),
            "System": platform.system(),
            "Threads": _C.get_num_threads(),
            "Kiln": _C.__version__,
            "Python": platform.python_version(),
        }
        known = (
            "train/loss",
            "valid/loss",
            "train/accuracy",
            "valid/accuracy",
            "lr",
            "seconds",
            "epoch",
        )
        curves = {}
        for row in self.history:
            for name, value in row.items():
                if name not in known:
                    split, _, metric = name.partition("/")
                    curves.setdefault(metric or split, {}).setdefault(split, []).append(
                        (row["epoch"], value)
                    )
        path = os.path.join(self.folder, "report.html")
        subtitle = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
        self._guarded(
            lambda: _train.write_report(
                path,
                self.title,
                subtitle,
                config,
                machine,
                self.history,
                list(self.step_loss),
                curves,
            )
        )
