"""A progress bar for work counted in replications: on a terminal, and nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from qsctl.cli.caller import ProgramCaller, program_caller
from qsctl.errors import Interrupted


def rate_text(done: int, seconds: float) -> str:
    """Return a rate per second, or per minute if it is low; empty if nothing is done yet."""
    if done <= 0 or seconds <= 0.0:
        return ""
    rate = done / seconds
    if rate >= 100.0:
        return f"{rate:,.0f}/s"
    return f"{rate:.3g}/s" if rate >= 1.0 else f"{60.0 * rate:.3g}/min"


class ShowProgress:
    """A progress display; this base class shows nothing, and is used where there is no terminal."""

    def __call__(self, done: int, total: int) -> None:
        """Show the progress."""

    def pause(self) -> None:
        """Hide the display before a question, until the next progress."""


class _Bar(ShowProgress):
    """A bar on standard error with the rate and its estimate of the time left."""

    def __init__(self, what: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from qsctl.cli.output.render import console

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console(sys.stderr), transient=True)
        self._task = self._bar.add_task(what, total=None, rate="")
        self._is_shown = False
        self._began: tuple[float, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        if not self._is_shown:  # not before: a question may come first
            self._is_shown = True
            self._bar.start()
        now_s = time.monotonic()
        began_s, first = self._began = self._began or (now_s, done)
        self._bar.update(self._task, completed=done, total=total, rate=rate_text(done - first, now_s - began_s))

    def pause(self) -> None:
        if self._is_shown:
            self._is_shown = False
            self._bar.stop()


class _ToProgram(ShowProgress):
    """Progress reported to a calling program, which may end the work."""

    def __init__(self, program: ProgramCaller) -> None:
        self._program = program

    def __call__(self, done: int, total: int) -> None:
        self._program.on_progress(done, total)
        if self._program.should_stop():
            raise Interrupted(f"stopped by the program after {done} of {total}")


@contextmanager
def task_progress(what: str) -> Iterator[ShowProgress]:
    """Yield a progress display: a bar on a terminal, nothing in a pipe; it is removed when the block ends."""
    program = program_caller()
    if program is not None:
        yield _ToProgram(program)
        return
    progress = _Bar(what) if sys.stderr.isatty() else ShowProgress()
    try:
        yield progress
    finally:
        progress.pause()
