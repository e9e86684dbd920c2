"""torch.utils.benchmark's names: times of statements, measured by Python's timeit."""

from __future__ import annotations

import statistics
import timeit as _timeit
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Compare", "Measurement", "Timer"]


class Measurement:
    """Times of a statement, in seconds for one run.

    number_per_run: how often the statement ran for each of raw_times. raw_times: seconds. task: what
    was measured, as Timer was given it.

    >>> kiln.utils.benchmark.Measurement(10, [1., 2., 3.]).median
    0.2
    """

    def __init__(
        self, number_per_run: int, raw_times: list[float], task: dict[str, Any] | None = None
    ) -> None:
        self.number_per_run, self.raw_times, self.task = number_per_run, raw_times, dict(task or {})

    @property
    def times(self) -> list[float]:
        """The times of one run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """Their median."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """Their mean."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between their quartiles."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def title(self) -> str:
        """The label, or the statement."""
        return self.task.get("label") or str(self.task.get("stmt", ""))

    def __repr__(self) -> str:
        return (
            f"<kiln.utils.benchmark.Measurement of {self.title}: median {_shown(self.median)}, IQR "
            f"{_shown(self.iqr)}, {len(self.times)} measurements, {self.number_per_run} runs each>"
        )


def _shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds / 1e-9:.2f} ns"


class Timer:
    """Measures a statement, on one thread unless num_threads says otherwise, after one run that does
    not count. Results of a GPU are waited for.

    stmt: the statement, or a function. setup, global_setup: statements that run before. timer: a
    clock. globals: names for the statements. label, sub_label, description, env: for tables.
    language: "python".

    >>> timer = kiln.utils.benchmark.Timer("x + 1", globals={"x": kiln.ones(2)})
    >>> timer.timeit(3).mean > 0
    True
    """

    def __init__(
        self,
        stmt: Any = "pass",
        setup: Any = "pass",
        global_setup: str = "",
        timer: Callable[[], float] | None = None,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if getattr(language, "name", str(language)).lower() not in ("python", "py"):
            raise errors.NotImplementedError("Timer: expected statements in Python")
        names = dict(globals or {})
        if global_setup:
            exec(global_setup, names)
        self._timer = _timeit.Timer(stmt, setup, timer or _now, names)
        self._threads = num_threads
        self._task = {
            "stmt": stmt, "label": label, "sub_label": sub_label, "description": description, "env": env,
            "num_threads": num_threads,
        }  # fmt: skip

    def _seconds(self, counts: Any) -> list[float]:
        before = _C.get_num_threads()
        _C.set_num_threads(self._threads)
        try:
            return [self._timer.timeit(count) for count in counts]
        finally:
            _C.set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """The time of `number` runs."""
        self._seconds([max(number // 100, 2)])
        return Measurement(number, self._seconds([number]), self._task)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """The times of blocks of runs, until min_run_time seconds are over. callback(number, seconds)
        hears of each."""
        number = 1
        while True:
            (taken,) = self._seconds([number])
            if taken >= min_run_time / 1000 or number >= 10**9:
                break
            number *= 10
        times: list[float] = []
        while sum(times) < min_run_time or not times:
            times += self._seconds([number])
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Any = None,
    ) -> Measurement:
        """blocked_autorange() until the quartiles are within threshold of the median, or max_run_time
        seconds are over."""
        found = self.blocked_autorange(callback, min_run_time)
        while sum(found.raw_times) < max_run_time and (
            len(found.raw_times) < 4 or found.iqr > threshold * found.median
        ):
            found.raw_times += self._seconds([found.number_per_run])
        return found


def _now() -> float:
    """The time when all that was asked for is done."""
    from .. import cuda

    cuda.synchronize()
    return _timeit.default_timer()


class Compare:
    """A table of measurements: a row for each sub_label, a column for each description.

    results: Measurements.

    >>> task = {"sub_label": "sum", "description": "time"}
    >>> half = kiln.utils.benchmark.Measurement(1, [0.5], task)
    >>> kiln.utils.benchmark.Compare([half]).print()
        | time
    sum | 500.00 ms
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: list[Measurement]) -> None:
        """Adds results."""
        self._results += results

    def trim_significant_figures(self) -> None:
        """Nothing to do: times are shown with two places."""

    def colorize(self, rowwise: bool = False) -> None:
        """Nothing to do. rowwise: without effect."""

    def highlight_warnings(self) -> None:
        """Nothing to do."""

    def print(self) -> None:
        """Prints the table."""
        print(self)

    def __str__(self) -> str:
        cells: dict[Any, dict[str, str]] = {}
        columns: list[str] = []
        for result in self._results:
            task = result.task
            column = str(task.get("description") or "")
            if column not in columns:
                columns.append(column)
            row = " ".join(str(task[key]) for key in ("label", "sub_label", "env") if task.get(key))
            cells.setdefault(row, {})[column] = _shown(result.median)
        head = ["", *columns]
        rows = [[row, *(found.get(column, "") for column in columns)] for row, found in cells.items()]
        table = [head, *rows] if any(columns) else rows
        widths = [max(len(line[i]) for line in table) for i in range(len(head))]
        lines = [" | ".join(text.ljust(n) for text, n in zip(line, widths)) for line in table]
        return "\n".join(line.rstrip() for line in lines)
