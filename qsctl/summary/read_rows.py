"""The progress of summaries: rows of logs that were read, of all that will be read.

A summary's number of passes over a run's log, and the number of rows, are known before it begins. During a pass, a
thread queries the tasks of Spark's running stages four times a second; a session of Spark Connect has no such query, so
that progress advances by whole passes. The reporting function is set by `reported_to` for all summaries in its block,
since a page makes several.
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
"""Returns the completed fraction of the computation in progress, 0 without one."""

Report = Callable[[int, int], None]
"""Called with the number of rows read, and the number of rows of all passes begun so far."""


@dataclass(slots=True)
class _RowsRead:
    report: Report
    done: int = 0
    total: int = 0


_ROWS: ContextVar[_RowsRead | None] = ContextVar("rows", default=None)


@contextmanager
def reported_to(report: Report) -> Iterator[None]:
    """Report the rows that summaries in the block read."""
    token = _ROWS.set(_RowsRead(report))
    try:
        yield
    finally:
        _ROWS.reset(token)


class Passes:
    """The passes of one summary over logs.

    Args:
        rows: the report of progress; None: progress is not reported.
    """

    def __init__(self, rows: _RowsRead | None) -> None:
        self._rows = rows
        self.length = 0
        """Rows of the pass in progress."""
        self._fraction = 0.0

    def begin(self, length: int) -> None:
        """End the pass in progress, if any, and begin one over `length` rows."""
        self.end()
        self._fraction, self.length = 0.0, length

    def end(self) -> None:
        """End the pass in progress, and report it.

        Raises:
            QsctlError: the reporting function ends the summary.
        """
        if self._rows is not None and self.length:
            length, self.length = self.length, 0
            self._rows.done += length
            self._rows.report(self._rows.done, self._rows.total)

    def look(self, fraction: float) -> None:
        """Report a fraction of the pass in progress; it never decreases, although stages begin one after the other."""
        if self._rows is not None:
            self._fraction = max(self._fraction, fraction)
            self._rows.report(self._rows.done + int(self._fraction * self.length), self._rows.total)


@contextmanager
def passes_over(fraction: Fraction, rows: int) -> Iterator[Passes]:
    """Yield the passes of a summary that will read `rows` rows.

    Args:
        fraction: returns the completed fraction of the computation in progress.
        rows: number of rows of all passes together.
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
    """Report the progress of passes until they are over; end silently if Spark does not answer, since the summary goes
    on.
    """
    try:
        while not over.wait(POLL_S):
            passes.look(fraction())
    except (PySparkException, Py4JError, OSError):  # the session is remote, or has ended
        return
