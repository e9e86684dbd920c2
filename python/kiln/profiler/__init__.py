"""What every op costs: `with kiln.profiler.profile() as p: ...`, then p.table()."""

import os

from .. import _C

__all__ = ["profile"]


class profile:
    """Counts ops on all threads within a with block: calls, time, bytes, allocations.

    table() is the text to print, rows() the same as dicts (op, count, seconds, bytes,
    allocations; the ops that took longest first), export_chrome_trace(path) a file for
    chrome://tracing or ui.perfetto.dev. A profile may be read while it runs, and again later.
    """

    def __init__(self):
        self._profile = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self._profile = _C._Profile()

    def stop(self):
        self._taken().stop()

    def _taken(self):
        if self._profile is None:
            raise RuntimeError("profile: nothing was profiled; enter it, or call start(), first")
        return self._profile

    def rows(self):
        return self._taken().rows()

    def table(self):
        return self._taken().table()

    def trace(self):
        """Chrome's trace format, as text."""
        return self._taken().trace()

    def export_chrome_trace(self, path):
        self._taken().write_trace(os.fspath(path))
