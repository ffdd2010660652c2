"""A worker whose tasks are long and of uneven length without work for the processor: it waits before each of them.

A machine of two processors shows so how eight or more slots are filled. The module is sent to the workers by value.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Interval:
    """The time in which a worker was busy with one piece, in seconds of the machine's clock."""

    began_s: float
    ended_s: float
    tasks: int


def wait_s(task: Any, mean_s: float) -> float:
    """Return how long a task takes: exponentially distributed, and the same wherever it runs."""
    import random

    return random.Random(f"{task.point.key} {task.replication}").expovariate(1 / mean_s)


def slow_work(folder: str, mean_s: float, scenario: Any, piece: Any, **rest: Any) -> Any:
    """Do the work of a piece slowly, and note when.

    Args:
        folder: a shared one for a file a piece.
        mean_s: the mean time of a task.
        scenario: as of `pieces.work`.
        piece: as of `pieces.work`.
        rest: as of `pieces.work`.
    """
    import msgspec

    from qsctl.summary.sweeps._pieces import work

    began, clock = time.time(), time.perf_counter()
    for task in piece.tasks:
        time.sleep(wait_s(task, mean_s))
    answer = work(scenario, piece, **rest)
    hidden = Path(folder) / f".{secrets.token_hex(8)}"
    hidden.write_text(f"{began} {time.time()} {len(piece.tasks)}")
    hidden.rename(hidden.with_name(f"piece-{os.getpid()}-{hidden.name[1:]}"))
    return msgspec.structs.replace(answer, seconds=time.perf_counter() - clock)


def counting_work(folder: str, scenario: Any, piece: Any, **rest: Any) -> Any:
    """Do the work of a piece, and note which kernels this process has compiled until now.

    Args:
        folder: a shared one for a file a process.
        scenario: as of `pieces.work`.
        piece: as of `pieces.work`.
        rest: as of `pieces.work`.
    """
    from qsctl.sim.kernel.jit import KERNELS
    from qsctl.summary.sweeps._pieces import work

    answer = work(scenario, piece, **rest)
    used = [kernel for kernel in KERNELS.values() if kernel._dispatcher is not None]
    compiled = [kernel.name for kernel in used for _ in range(sum(kernel.stats.cache_misses.values()))]
    hidden = Path(folder) / f".{secrets.token_hex(8)}"
    hidden.write_text(" ".join(compiled))
    hidden.rename(Path(folder) / f"process-{os.getpid()}")
    return answer


@contextlib.contextmanager
def slowed(folder: Path, mean_s: float) -> Iterator[None]:
    """Let workers of Spark be slow for the time of a block; a folder for `intervals`."""
    folder.mkdir()
    with _working(partial(slow_work, str(folder), mean_s)):
        yield


@contextlib.contextmanager
def compilations_counted(folder: Path) -> Iterator[None]:
    """Let workers of Spark note what they compile for the time of a block; a folder with a file a process."""
    folder.mkdir()
    with _working(partial(counting_work, str(folder))):
        yield


@contextlib.contextmanager
def _working(work: Callable[..., Any]) -> Iterator[None]:
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("qsctl.summary.sweeps._spark_runner.work", work)
            yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def intervals(folder: Path) -> list[Interval]:
    """Return when the workers were busy."""
    found = []
    for file in folder.glob("piece-*"):
        began, end, tasks = file.read_text().split()
        found.append(Interval(float(began), float(end), int(tasks)))
    return found


def busy_share(busy: list[Interval], slots: list[tuple[float, int]]) -> float:
    """Return which part of the slots' time was spent on pieces, from the first one's begin to the last one's end.

    Args:
        busy: of all workers.
        slots: instants, in ascending order, with the number of slots from then on.
    """
    began, end = min(each.began_s for each in busy), max(each.ended_s for each in busy)
    ends = [at for at, _ in slots[1:]] + [end]
    there = sum(
        count * max(0.0, min(until, end) - (began if place == 0 else max(at, began)))
        for place, ((at, count), until) in enumerate(zip(slots, ends, strict=True))
    )
    return sum(each.ended_s - each.began_s for each in busy) / there
