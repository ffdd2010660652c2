"""The cost of a long run (time, memory, disk), estimated while it begins; and the question on a terminal to continue.

Decides when a run is long. Its first seconds are extrapolated over its horizon and its replications: nothing is
simulated for the estimate alone, and the time of compilation is excluded. A script is not asked: the question requires
that standard input and standard error are terminals, as those of `confirmation`.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.confirmation import Declined
from qsctl.cli.simulation.results.size_words import memory_text

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.sim.replication import ReplicationProgress

FOUND_AFTER_S: Final = 2.0
"""Seconds of simulation that are extrapolated."""

YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Skip the question on a terminal before work of more than a minute.")
]


@dataclass(frozen=True, slots=True)
class RunCost:
    """The estimated cost of the rest of a run: seconds, and the largest sizes in memory and on disk, in bytes."""

    seconds: float
    memory_bytes: int
    disk_bytes: int | None
    """None if the run folder is not on this machine."""

    def __str__(self) -> str:
        minutes = self.seconds / 60
        length = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours"
        disk = "" if self.disk_bytes is None else f", {memory_text(self.disk_bytes)} on the disk"
        return f"about {length}, {memory_text(self.memory_bytes)} of memory{disk}"


@dataclass(slots=True)
class LongRun:
    """A run that may be long: the progress of its replications, its estimated cost, and the user's answer.

    Args:
        folder: the run folder, whose size is measured.
        replications: of the whole run.
        workers: number of processes that simulate concurrently.
        end: called if the user declines; ends the run at its next slice.
        yes: whether the question is skipped.
    """

    folder: Location
    replications: int
    workers: int
    end: Callable[[], None]
    yes: bool = False
    cost: RunCost | None = None
    declined: bool = False
    asked_s: float = 0.0
    """Seconds in which the question was open, to be subtracted from the run's time."""
    _began_s: float = 0.0
    _first: float = 0.0
    _done: dict[int, float] = field(default_factory=dict)
    _memory: dict[int, int] = field(default_factory=dict)
    _is_known: bool = False

    def is_found(self, progress: ReplicationProgress) -> bool:
        """Record progress; return True once, at the report that shows that the run is long and that sets `cost`."""
        from qsctl.summary.sweeps.cost import ASKED_ABOVE_S

        self._done[progress.replication] = progress.simulated_ns / progress.horizon_ns
        self._memory[progress.replication] = progress.memory_bytes
        if self._is_known:
            return False
        now_s, done = time.monotonic(), sum(self._done.values())
        if not self._began_s:
            self._began_s, self._first = now_s, done
        if now_s - self._began_s < FOUND_AFTER_S or done <= self._first:
            return False
        self._is_known = True
        seconds = (self.replications - done) * (now_s - self._began_s) / (done - self._first)
        if seconds <= ASKED_ABOVE_S:
            return False
        # A finished replication has freed its memory, or its process runs the next one.
        processes = min(self.workers, self.replications)
        memory = max(self._memory.values()) * processes
        self.cost = RunCost(seconds, memory, self._disk_bytes(done))
        return True

    def _disk_bytes(self, done: float) -> int | None:
        if not isinstance(self.folder, Path):
            return None
        written = sum(each.stat().st_size for each in self.folder.rglob("*") if each.is_file())
        return int(written * self.replications / done)

    def ask(self) -> None:
        """Show the cost, and ask on a terminal whether to continue; a no ends the run at its next slice."""
        cost = self.cost
        assert cost is not None
        text = str(cost)
        typer.echo(f"{text[0].upper()}{text[1:]}.{self._room(cost)}", err=True)
        if self.yes or not sys.stdin.isatty():
            return
        began_s = time.monotonic()
        if not _confirmed():
            self.declined = True
            self.end()
        self.asked_s = time.monotonic() - began_s

    def _room(self, cost: RunCost) -> str:
        if cost.disk_bytes is None or not isinstance(self.folder, Path):
            return ""
        free = shutil.disk_usage(self.folder).free
        return f" The disk has only {memory_text(free)} left." if cost.disk_bytes > free else ""

    def remove_declined(self) -> None:
        """Remove the run folder if the user declined.

        Raises:
            Declined: the user did.
        """
        from qsctl.eventlog.location import remove_tree

        if self.declined:
            remove_tree(self.folder)
            raise Declined(
                f"{self.cost} were declined: nothing is kept",
                remedy="Shorten the horizon, or ask for fewer replications or less --level. --yes skips the question.",
            )


def _confirmed() -> bool:
    """Ask whether to continue; Ctrl-C, which otherwise ends a run at its next slice, counts as no."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm("Go on?", default=True, err=True)
    except typer.Abort:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
