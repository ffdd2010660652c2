"""Summaries report the rows that they read, and end as well where Spark cannot be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError

from qsctl.errors import Interrupted
from qsctl.summary import read_rows
from qsctl.summary.read_rows import passes_over, reported_to
from qsctl.summary.spark.engine import SparkEngine


class Spark:
    """A session whose running stages have done 3 of 12 tasks."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.asked = threading.Event()

    @property
    def sparkContext(self) -> Spark:
        return self

    def statusTracker(self) -> Spark:
        self.asked.set()
        if self.fault is not None:
            raise self.fault
        return self

    def getActiveStageIds(self) -> list[int]:
        return [1, 2, 3]

    def getStageInfo(self, stage: int) -> Any:
        tasks = {1: (8, 1), 2: (4, 2)}.get(stage)  # what is over is not known any more
        return None if tasks is None else type("Stage", (), {"numTasks": tasks[0], "numCompletedTasks": tasks[1]})()


def noting(found: list[tuple[int, int]], part: threading.Event, wanted: tuple[int, int]) -> Callable[[int, int], None]:
    def report(done: int, total: int) -> None:
        found.append((done, total))
        if (done, total) == wanted:
            part.set()

    return report


def test_passes_and_their_parts_are_reported_over_all_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_rows, "POLL_S", 0.001)
    found: list[tuple[int, int]] = []
    part = threading.Event()
    spark: Any = Spark()
    with reported_to(noting(found, part, (1250, 2000))):
        with passes_over(SparkEngine(spark).fraction, 2000) as passes:
            passes.begin(1000)
            passes.begin(1000)
            assert part.wait(60)
        with passes_over(SparkEngine(spark).fraction, 500) as passes:
            passes.begin(500)
    assert found[0] == (0, 2000)
    assert (2000, 2500) in found
    assert found[-1] == (2500, 2500)
    assert not [each for each in threading.enumerate() if each.name == "summary-progress"]


def test_a_session_that_has_no_stages_to_ask_for_goes_from_pass_to_pass() -> None:
    found: list[tuple[int, int]] = []
    spark: Any = Spark(PySparkAttributeError("sparkContext"))
    with (
        reported_to(lambda done, total: found.append((done, total))),
        passes_over(SparkEngine(spark).fraction, 20) as passes,
    ):
        assert spark.asked.wait(60)
        passes.begin(20)
    assert found == [(0, 20), (20, 20)]


def test_what_shows_progress_may_end_the_summary() -> None:
    def report(done: int, total: int) -> None:
        if done:
            raise Interrupted("stopped by the program")

    spark: Any = Spark(OSError())
    with reported_to(report), pytest.raises(Interrupted), passes_over(SparkEngine(spark).fraction, 2) as passes:
        passes.begin(1)
        passes.begin(1)


def test_nothing_is_watched_where_nothing_shows_it() -> None:
    spark: Any = Spark()
    with passes_over(SparkEngine(spark).fraction, 20) as passes:
        passes.begin(20)
        passes.end()
    assert not spark.asked.is_set()
