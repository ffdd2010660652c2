"""Parallel repetitions: each runs in a process of its own that writes its own partition of the run folder.

Processes are spawned, never forked: a fork would copy the locks of running threads. What a repetition writes depends
on the scenario and its number alone, so that the number of workers changes no byte.
"""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.synchronize import Event
from typing import Final

from qsctl.endings import children_without_signals, end_with_parent
from qsctl.eventlog.location import Location
from qsctl.sim.replication import ReplicationOutcome, ReplicationProgress, simulate_replication
from qsctl.sim.scenario.scenario import Scenario

POLL_SECONDS: Final = 0.1

_stop: Event | None = None
_reports: multiprocessing.Queue[ReplicationProgress] | None = None


def _begin(stop: Event, reports: multiprocessing.Queue[ReplicationProgress]) -> None:
    """Set up a worker process: its stop event and progress queue; Ctrl-C is left to the parent, which sets `stop`."""
    end_with_parent()
    global _stop, _reports
    _stop, _reports = stop, reports


def _replicate(scenario: Scenario, folder: Location, run_id: str, replication: int, threads: int) -> ReplicationOutcome:
    assert _stop is not None
    assert _reports is not None
    return simulate_replication(
        scenario, folder, run_id, replication, progress=_reports.put, stop=_stop.is_set, threads=threads
    )


def simulate_in_workers(
    scenario: Scenario,
    folder: Location,
    run_id: str,
    workers: int,
    note: Callable[[ReplicationOutcome], None],
    progress: Callable[[ReplicationProgress], None] | None,
    stop: Callable[[], bool],
    threads: int = 1,
) -> None:
    """Run every repetition of the scenario, `workers` at a time; `note` is called with each outcome.

    `threads` is the number of threads of each repetition. A stop ends the running repetitions early and skips those
    that have not begun.
    """
    context = multiprocessing.get_context("spawn")
    halt = context.Event()
    reports: multiprocessing.Queue[ReplicationProgress] = context.Queue()
    with ProcessPoolExecutor(min(workers, scenario.replications), context, _begin, (halt, reports)) as pool:
        with children_without_signals():
            waiting: set[Future[ReplicationOutcome]] = {
                pool.submit(_replicate, scenario, folder, run_id, replication, threads)
                for replication in range(scenario.replications)
            }
        while waiting:
            try:
                done, waiting = wait(waiting, POLL_SECONDS, FIRST_COMPLETED)
                if stop() and not halt.is_set():
                    halt.set()
            except KeyboardInterrupt:
                halt.set()
                continue
            if halt.is_set():
                waiting = {each for each in waiting if not each.cancel()}
            for each in done:
                note(each.result())
            _report(reports, progress)


def _report(
    reports: multiprocessing.Queue[ReplicationProgress], progress: Callable[[ReplicationProgress], None] | None
) -> None:
    while True:
        try:
            news = reports.get_nowait()
        except queue.Empty:
            return
        if progress is not None:
            progress(news)
