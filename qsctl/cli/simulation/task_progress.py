"""A progress bar for work that is counted in replications: on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ShowProgress(Protocol):
    """Called with how many are done, of how many."""

    def __call__(self, done: int, total: int) -> None:
        """Show it."""


@contextmanager
def task_progress(what: str) -> Iterator[ShowProgress]:
    """A bar on standard error with the rate's estimate of the time left, gone when the block ends."""
    if not sys.stderr.isatty():
        yield _show_nothing
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from qsctl.cli.output.render import console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console(sys.stderr), transient=True)
    task = bar.add_task(what, total=None)
    is_shown = False

    def show(done: int, total: int) -> None:
        nonlocal is_shown
        if not is_shown:  # not before: a question may come first
            is_shown = True
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


def _show_nothing(done: int, total: int) -> None:
    """Show nothing: standard error is no terminal."""
    del done, total
