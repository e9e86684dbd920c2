"""A run in a notebook: one display that is drawn anew in place."""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from time import monotonic
from typing import TYPE_CHECKING

from .._C import _train
from .pictures import escaped, parts_of, plots, values_table

if TYPE_CHECKING:
    from typing import Any

BETWEEN_DRAWS = 0.3  # seconds
BETWEEN_EPOCHS = 0.1  # where epochs are so short that a browser would not follow
COST = 100  # drawing takes at most about the hundredth part of the time
MOST_NOTES = 6


def running_shell() -> Any:
    """IPython's shell, if this program runs in one; never imports IPython."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if callable(get_ipython) else None


def in_kernel() -> bool:
    """Whether this program runs in the kernel of a notebook, not in a terminal."""
    return getattr(running_shell(), "kernel", None) is not None


class Picture:
    """What a notebook shows: HTML, or plain text where there is none."""

    def __init__(self, html: str, text: str) -> None:
        self.html = html
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


class NotebookView:
    """Stands for a Progress, and shows more: metrics, their plots, how the run ended."""

    def __init__(self) -> None:
        self._learner: Any = None
        self._handle: Any = None
        self._begin()

    def _begin(self):
        self._notes: list[str] = []
        self._label = "starting"
        self._doing = ""  # what goes on besides training
        # Batches: over, over when the clock started, of this epoch, of later ones.
        self._done = self._first = self._total = self._later = 0
        self._samples = 0
        self._end = self._how = ""  # how the run ended, and what is to be said of it
        self._opened = self._started = self._next = self._next_epoch = monotonic()

    # ---- A run

    def open(self, learner: Any) -> None:
        """Makes the display of a run."""
        self._learner = learner
        self._begin()
        try:
            display = importlib.import_module("IPython.display").display
            self._handle = display(self._picture(), display_id=True)
        except Exception as error:
            self._give_up(error)
        self._next = monotonic() + BETWEEN_DRAWS

    def close(self, error: BaseException | None) -> None:
        """The last picture: how the run ended, and how it goes on."""
        learner = self._learner
        if learner is None:
            return
        self._doing = ""
        if error is None:
            self._end = "finished"
            if learner._stop_reason is not None:
                self._end, self._how = "stopped", f"Stopped: {learner._stop_reason}"
        elif isinstance(error, KeyboardInterrupt):
            self._end = "interrupted"
            if not self._notes or not self._notes[-1].startswith("Interrupted"):
                self._how = f"Interrupted in {self._where()}.\n{self._how_to_resume()}"
        else:
            self._end = "failed"
            said = [f"{type(error).__name__}: {error}", f"This happened in {self._where()}."]
            notes = list(getattr(error, "__notes__", ()))
            if not any("resume=True" in note for note in notes):
                notes.append(self._how_to_resume())
            self._how = "\n".join(said + notes)
        self._draw()
        self._learner = self._handle = None

    def _where(self):
        learner = self._learner
        return f"epoch {learner.epoch + 1}, after batch {learner.batch} (step {learner.step:,})"

    def _how_to_resume(self):
        store = self._learner.store
        if self._learner.folder is None:
            return "Nothing is saved: there is no folder. With folder=, fit(..., resume=True) goes on."
        kept = [] if store is None else store.list()
        if not kept:
            return "There is no checkpoint yet: the run begins anew."
        return (
            f"The last checkpoint is {kept[-1]['path']!r}, of step {kept[-1]['step']};"
            " fit(..., resume=True) goes on from it."
        )

    # ---- The same as Progress

    def start(self, label: str, total: int, done: int = 0, later: int = 0) -> None:
        """Starts an epoch of `total` batches, of which `done` are over; `later` come after it."""
        self._label, self._total, self._first, self._later = label, total, done, later
        self._doing = ""
        self._samples, self._done = 0, done
        self._started = monotonic()

    def advance(self, samples: int) -> bool:
        """Whether it is time for show()."""
        self._samples += samples
        return monotonic() >= self._next

    def show(self, values: dict[str, str]) -> None:
        """Draws; the learner has the values."""
        if self._learner is not None:
            self._done = self._learner.batch
            self._draw()

    def finish(self) -> None:
        """Nothing: close() ends the display."""

    def print(self, line: str) -> None:
        """Keeps a line, to be shown with the next picture."""
        if self._learner is not None:
            self._notes = [*self._notes, line][-MOST_NOTES:]

    # ---- More than Progress

    def measuring(self, split: str) -> None:
        """While a split is measured."""
        if self._learner is not None and monotonic() >= self._next:
            self._doing = f"measuring {split}"
            self._done = self._learner.batch
            self._draw()

    def epoch_end(self) -> None:
        """After an epoch was measured."""
        now = monotonic()
        if self._learner is None or now < self._next_epoch:
            return
        self._doing = ""
        self._done = self._total
        self._draw()
        self._next_epoch = now + max(BETWEEN_EPOCHS, COST * (monotonic() - now))

    # ---- Drawing

    def _draw(self):
        before = monotonic()
        if self._handle is not None:
            try:
                self._handle.update(self._picture())
            except Exception as error:
                self._give_up(error)
        now = monotonic()
        self._next = now + max(BETWEEN_DRAWS, COST * (now - before))

    def _give_up(self, error):
        """A picture that cannot be shown must not end a run."""
        self._handle = None
        message = f"Learner: the notebook view ends: {type(error).__name__}: {error}; training goes on"
        warnings.warn(message, stacklevel=2)

    def _picture(self):
        return Picture(self._html(), self._text())

    def _columns(self):
        """split -> metric -> value, with what is running first."""
        columns: dict[str, dict[str, float]] = {}
        running = self._learner._running.values()
        if running:
            columns["this epoch"] = running
        for name, value in self._learner.values.items():
            split, metric = parts_of(name)
            if split:
                columns.setdefault(split, {})[metric] = value
        return columns

    def _facts(self):
        """Short texts on how far the run is."""
        learner = self._learner
        now = monotonic()
        facts = [self._label, f"step {learner.step:,}"]
        if self._end:
            facts[0] = f"{learner.epoch:,} epoch{'' if learner.epoch == 1 else 's'}"
            return [*facts, f"{_train.format_duration(now - self._opened)} in all"]
        if self._doing:
            facts.append(self._doing)
        elif self._total:
            facts.append(f"batch {self._done:,} of {self._total:,}")
        elif self._done:
            facts.append(f"batch {self._done:,}")
        seconds = now - self._started
        new = self._done - self._first if self._samples else 0
        if self._total and new > 0 and seconds > 0:
            left = seconds / new * (self._total - self._done + self._later)
            facts.append(f"{_train.format_duration(left)} left")
        if self._samples and seconds > 0 and not self._doing and self._done != self._total:
            facts.append(f"{self._samples / seconds:,.0f} samples/s")
        rate = learner.values.get("lr")
        if rate is not None:
            facts.append(f"lr {rate:.4g}")
        return facts

    def _share(self):
        if self._end == "finished":
            return 1.0
        return min(self._done / self._total, 1.0) if self._total else 0.0

    def _html(self):
        learner = self._learner
        percent = math.floor(1000 * self._share()) / 10
        color = "#ef4444" if self._end in ("failed", "interrupted") else "#3b82f6"
        if self._end == "finished":
            color = "#16a34a"
        state = self._end or "running"
        facts = " · ".join(escaped(fact) for fact in self._facts())
        bar = (
            '<div role="progressbar" aria-valuemin="0" aria-valuemax="100"'
            f' aria-valuenow="{percent:.1f}" style="height:8px;max-width:40em;border-radius:4px;'
            f'margin:6px 0;background:rgba(128,128,128,0.3)"><div style="width:{percent:.1f}%;'
            f'height:8px;border-radius:4px;background:{color}"></div></div>'
        )
        how = ""
        if self._how:
            how = (
                '<div role="alert" style="white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 0;'
                f'padding:4px 10px;border-left:4px solid {color}">{escaped(self._how)}</div>'
            )
        notes = ""
        if self._notes:
            lines = escaped("\n".join(self._notes))
            style = "white-space:pre-wrap;overflow-wrap:anywhere;margin-top:6px;opacity:0.8"
            notes = f'<div style="{style}">{lines}</div>'
        return (
            f'<div class="kiln-run"><div><b>{escaped(learner.title)}</b> · {state} · {facts}</div>'
            f"{bar}{how}{values_table(self._columns())}{plots(learner.history)}{notes}</div>"
        )

    def _text(self):
        state = self._end or f"running, {100 * self._share():.0f} %"
        lines = [f"{self._learner.title}: {state}, {', '.join(self._facts())}"]
        for split, values in self._columns().items():
            lines.append(f"{split}: " + ", ".join(f"{k} {v:.6g}" for k, v in values.items()))
        return "\n".join([*lines, *([self._how] if self._how else []), *self._notes])
