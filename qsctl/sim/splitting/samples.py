"""Independent split runs, in this process or in several: each depends on its number alone."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.synchronize import Event
from typing import Final

from qsctl.endings import children_without_signals, end_with_parent
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.splitting.branchable import trajectory_of
from qsctl.sim.splitting.question import Question
from qsctl.sim.splitting.restart import Levels, SplitRun, split_run

POLL_SECONDS: Final = 0.1
PARTS: Final = 8
"""Into how many parts a worker's samples are cut, for progress."""

_stop: Event | None = None


def draw_samples(
    scenario: Scenario,
    question: Question,
    levels: Levels,
    count: int,
    *,
    first: int = 0,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[SplitRun] | None:
    """Return the samples `first` … `first` + count − 1, the same with any number of workers; None when stopped.

    Args:
        scenario: the scenario to simulate.
        question: the question about the rare event.
        levels: the thresholds and factors of the splitting.
        count: the number of samples.
        first: the number of the first one.
        workers: the number of processes; 1 uses only this process.
        progress: called with the number of finished samples.
        stop: called often; True ends the sampling.
    """
    if workers > 1 and count > 1:
        return _in_workers(scenario, question, levels, range(first, first + count), min(workers, count), progress, stop)
    samples: list[SplitRun] = []
    for number in range(first, first + count):
        sample = split_run(trajectory_of(scenario, number, question), question, levels, stop=stop)
        if sample is None:
            return None
        samples.append(sample)
        if progress is not None:
            progress(len(samples))
    return samples


def _begin(stop: Event) -> None:
    end_with_parent()
    global _stop  # noqa: PLW0603 - a worker has one
    _stop = stop


def _part(scenario: Scenario, question: Question, levels: Levels, first: int, end: int) -> list[SplitRun] | None:
    assert _stop is not None
    samples: list[SplitRun] = []
    for number in range(first, end):
        sample = split_run(trajectory_of(scenario, number, question), question, levels, stop=_stop.is_set)
        if sample is None:
            return None
        samples.append(sample)
    return samples


def _in_workers(
    scenario: Scenario,
    question: Question,
    levels: Levels,
    numbers: range,
    workers: int,
    progress: Callable[[int], None] | None,
    stop: Callable[[], bool],
) -> list[SplitRun] | None:
    context = multiprocessing.get_context("spawn")
    halt = context.Event()
    size = max(1, len(numbers) // (workers * PARTS))
    parts: dict[int, list[SplitRun]] = {}
    with ProcessPoolExecutor(workers, context, _begin, (halt,)) as pool:
        with children_without_signals():
            waiting: dict[Future[list[SplitRun] | None], int] = {
                pool.submit(_part, scenario, question, levels, first, min(numbers.stop, first + size)): first
                for first in numbers[::size]
            }
        while waiting:
            try:
                done, _ = wait(waiting, POLL_SECONDS, FIRST_COMPLETED)
            except KeyboardInterrupt:
                halt.set()
                continue
            if stop():
                halt.set()
            for each in done:
                first, found = waiting.pop(each), each.result()
                if found is not None:
                    parts[first] = found
            if progress is not None:
                progress(sum(len(part) for part in parts.values()))
    if halt.is_set():
        return None
    return [sample for first in sorted(parts) for sample in parts[first]]
