"""The rows that summaries have read, of those that they will: progress while Spark goes through logs.

A summary's number of passes over a run's log is known before it begins, and its rows are. Within a pass Spark is asked
for the tasks of its running stages, in a thread, four times a second; a session of Spark Connect has none to ask for,
and progress then goes from pass to pass. What shows progress is set by `reported_to` for all summaries inside, which a
page makes several of.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

POLL_S: Final = 0.25

Fraction = Callable[[], float]
"""Returns the fraction of what is being computed that is done, 0 where nothing is."""

Report = Callable[[int, int], None]
"""Called with the rows that were read and those of all passes begun so far."""


@dataclass(slots=True)
class _RowsRead:
    report: Report
    done: int = 0
    total: int = 0


_ROWS: ContextVar[_RowsRead | None] = ContextVar("rows", default=None)


@contextmanager
def reported_to(report: Report) -> Iterator[None]:
    """Report the rows that summaries of this `with` statement read."""
    token = _ROWS.set(_RowsRead(report))
    try:
        yield
    finally:
        _ROWS.reset(token)


class Passes:
    """The passes of one summary over logs.

    Args:
        rows: what is reported; None: nothing is.
    """

    def __init__(self, rows: _RowsRead | None) -> None:
        self._rows = rows
        self.length = 0
        """Rows of the pass in progress."""
        self._fraction = 0.0

    def begin(self, length: int) -> None:
        """End the pass in progress, if any, and begin one over that number of rows."""
        self.end()
        self._fraction, self.length = 0.0, length

    def end(self) -> None:
        """End the pass in progress.

        Raises:
            QsctlError: what shows progress wants the summary to end.
        """
        if self._rows is not None and self.length:
            length, self.length = self.length, 0
            self._rows.done += length
            self._rows.report(self._rows.done, self._rows.total)

    def look(self, fraction: float) -> None:
        """Report a part of the pass in progress: the most that was seen of it, for its stages begin one by one."""
        if self._rows is not None:
            self._fraction = max(self._fraction, fraction)
            self._rows.report(self._rows.done + int(self._fraction * self.length), self._rows.total)


@contextmanager
def passes_over(fraction: Fraction, rows: int) -> Iterator[Passes]:
    """Yield the passes of a summary that will read that number of rows, all passes added.

    Args:
        fraction: of what is being computed, how much is done.
        rows: of all passes.
    """
    reported = _ROWS.get()
    passes = Passes(reported)
    if reported is None or not rows:
        yield passes
        return
    reported.total += rows
    reported.report(reported.done, reported.total)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(fraction, passes, over), name="summary-progress", daemon=True)
    watcher.start()
    try:
        yield passes
        passes.end()
    finally:
        over.set()
        watcher.join()


def _watch(fraction: Fraction, passes: Passes, over: threading.Event) -> None:
    """Report how far the pass in progress is until all are over, or Spark has no answer: the summary goes on."""
    try:
        while not over.wait(POLL_S):
            passes.look(fraction())
    except (PySparkException, Py4JError, OSError):  # of a session that is remote, or over
        return
