"""A run watched by the command line: its progress, Ctrl-C, and the question if it turns out to be long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qsctl.cli.simulation.progress.long_run import LongRun
from qsctl.cli.simulation.progress.run_progress import run_progress, stop_on_interrupt
from qsctl.errors import Interrupted

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.sim.replication import ReplicationProgress


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The callbacks that `sim.run.run` receives for a run."""

    progress: Callable[[ReplicationProgress], None] | None
    stop: Callable[[], bool]
    _long_run: LongRun

    @property
    def asked_s(self) -> float:
        """Return the seconds in which the question was open, to be subtracted from the run's time."""
        return self._long_run.asked_s


@contextmanager
def watched_run(name: str, folder: Location, replications: int, workers: int, *, yes: bool) -> Iterator[WatchedRun]:
    """Yield the callbacks for a run within the block, which show its progress and ask if it is long.

    Args:
        name: shown beside the bar.
        folder: the run folder; it is removed if the user declines.
        replications: of the run.
        workers: number of processes that simulate concurrently.
        yes: whether the question is skipped.

    Raises:
        Declined: the user answered no.
    """
    with stop_on_interrupt() as stopped:
        long_run = LongRun(folder, replications, workers, stopped.end, yes)
        try:
            with run_progress(name, replications, long_run) as progress:
                yield WatchedRun(progress, stopped, long_run)
        except Interrupted:
            long_run.remove_declined()
            raise
    long_run.remove_declined()
