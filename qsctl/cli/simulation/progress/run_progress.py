"""The progress bar of a running simulation on a terminal, and the handling of Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from qsctl.cli.caller import ProgramCaller, program_caller
from qsctl.endings import INTERRUPTS

if TYPE_CHECKING:
    from qsctl.cli.simulation.progress.long_run import LongRun
    from qsctl.sim.replication import ReplicationProgress

COMPILING: Final = (
    "Compiling the simulator for this machine, once: 20 to 45 seconds of an idle processor. "
    "qsctl compile does it beforehand."
)
_RATE_AFTER_S: Final = 0.5
"""Seconds before which no rate is shown, as it would mainly consist of preparation."""


@contextmanager
def run_progress(
    name: str, replications: int, long_run: LongRun | None = None
) -> Iterator[Callable[[ReplicationProgress], None] | None]:
    """Yield a callback that shows a bar with messages, rate and time left; None if standard error is not a terminal.

    Compilation is announced. If the run turns out to be long, `long_run` shows its cost, once.
    """
    if (program := program_caller()) is not None:
        yield _reported_to(program, replications)
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from qsctl.cli.output.render import console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[messages]:,} messages, {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    done: dict[int, float] = {}
    messages: dict[int, int] = {}
    with Bar(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(f"{name}: preparing", total=float(replications), messages=0, rate="")
        announced = False
        began = 0.0

        def show(progress: ReplicationProgress) -> None:
            nonlocal announced, began
            if progress.compiles:
                if not announced:
                    announced = True
                    bar.console.print(COMPILING)
                return
            began = began or time.monotonic()
            done[progress.replication] = progress.simulated_ns / progress.horizon_ns
            messages[progress.replication] = progress.messages
            total = sum(messages.values())
            seconds = time.monotonic() - began
            rate = f"{total / seconds:,.0f}/s" if seconds > _RATE_AFTER_S else ""
            bar.update(task, description=name, completed=sum(done.values()), messages=total, rate=rate)
            if long_run is not None and long_run.is_found(progress):
                bar.stop()
                long_run.ask()
                bar.start()

        yield show


def _reported_to(program: ProgramCaller, replications: int) -> Callable[[ReplicationProgress], None]:
    done: dict[int, float] = {}

    def report(progress: ReplicationProgress) -> None:
        if progress.compiles:
            return
        done[progress.replication] = progress.simulated_ns / progress.horizon_ns
        program.on_replication(progress)
        program.on_progress(sum(done.values()), float(replications))

    return report


class Stopped:
    """The request to stop a run, by the user or by the calling program."""

    def __init__(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        self.is_interrupted = False
        self._should_stop = should_stop

    def end(self) -> None:
        """Request that the run ends at its next slice."""
        self.is_interrupted = True

    def __call__(self) -> bool:
        """Return whether to stop; called between two slices."""
        return self.is_interrupted or self._should_stop()


@contextmanager
def stop_on_interrupt() -> Iterator[Stopped]:
    """Yield the request to stop that the first Ctrl-C sets, which keeps the results so far; the second ends at once."""
    import signal
    import threading

    if (program := program_caller()) is not None:  # its signals are its own
        yield Stopped(program.should_stop)
        return
    stopped = Stopped()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def note(number: int, frame: object) -> None:
        del number, frame
        if stopped.is_interrupted:
            raise KeyboardInterrupt
        stopped.is_interrupted = True

    before = {number: signal.signal(number, note) for number in INTERRUPTS}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
