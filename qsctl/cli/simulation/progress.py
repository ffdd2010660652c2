"""While a simulation runs: a bar with the time left on a terminal, and what Ctrl-C means."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from qsctl.cli.caller import ProgramCaller, program_caller
from qsctl.endings import INTERRUPTS

if TYPE_CHECKING:
    from rich.console import Console

    from qsctl.sim.replication import ReplicationProgress


@contextmanager
def run_progress(
    name: str, replications: int, *, compiled: bool = False
) -> Iterator[Callable[[ReplicationProgress], None] | None]:
    """Show on standard error a bar with messages so far and the time left; nothing where that is not a terminal.

    A model that is `compiled` is announced: the first run waits a quarter of a minute for it.
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
        TextColumn("{task.fields[messages]:,} messages"),
        TimeRemainingColumn(),
    )
    done: dict[int, float] = {}
    messages: dict[int, int] = {}
    with Bar(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(f"{name}: preparing", total=float(replications), messages=0)

        def show(progress: ReplicationProgress) -> None:
            done[progress.replication] = progress.simulated_ns / progress.horizon_ns
            messages[progress.replication] = progress.messages
            bar.update(task, description=name, completed=sum(done.values()), messages=sum(messages.values()))

        with _compilation(bar.console) if compiled else nullcontext():
            yield show


def _reported_to(program: ProgramCaller, replications: int) -> Callable[[ReplicationProgress], None]:
    done: dict[int, float] = {}

    def report(progress: ReplicationProgress) -> None:
        done[progress.replication] = progress.simulated_ns / progress.horizon_ns
        program.on_progress(sum(done.values()), float(replications))

    return report


def _compilation(console: Console) -> AbstractContextManager[None]:
    from qsctl.sim.kernel.compilations import compilation_reported

    return compilation_reported(
        lambda: console.print("Compiling the simulator for this machine, once: about 15 seconds.")
    )


class Stopped:
    """The state whether the user interrupted the run, or the program that called wants it to end."""

    def __init__(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        self.is_interrupted = False
        self._should_stop = should_stop

    def __call__(self) -> bool:
        """Return whether to stop; called between two slices."""
        return self.is_interrupted or self._should_stop()


@contextmanager
def stop_on_interrupt() -> Iterator[Stopped]:
    """End the run at its next slice at the first Ctrl-C, which keeps what there is; at once at the second."""
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
