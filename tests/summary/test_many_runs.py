"""Many runs in one plan: the figures of each are those that it has alone, and Spark's jobs are as many as for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qsctl.summary import job, summary_frames
from qsctl.summary.run_summary import RunSummary
from qsctl.summary.spark.session import SparkOptions
from tests.campaigns import is_campaign


def rows_of(summary: RunSummary, label: str | None) -> dict[str, list[str]]:
    """The rows of one run in every table, without the name of the run."""
    named: dict[str, Sequence[Mapping[str, Any]]] = {
        "queues": [{name: getattr(each, name) for name in each.__slots__} for each in summary.queues],
        **summary.tables,
    }
    return {
        name: sorted(repr({**row, "run_id": None}) for row in rows if row["run_id"] == label)
        for name, rows in named.items()
        if any(row["run_id"] == label for row in rows)
    }


@contextmanager
def jobs_of(spark: Any) -> Iterator[list[int]]:
    """The numbers of the jobs that Spark runs inside the block."""
    spark.sparkContext.setJobGroup("counted", "")
    found: list[int] = []
    before = set(spark.sparkContext.statusTracker().getJobIdsForGroup("counted"))
    try:
        yield found
    finally:
        found += set(spark.sparkContext.statusTracker().getJobIdsForGroup("counted")) - before
        spark.sparkContext.setJobGroup("", "")


EVERYTHING_BY = (("client", "queue"), ("replication",)) if is_campaign() else ()
FEW = (0, 2, 4)
"""Places of a run with repetitions, of one with events, and of one without a log."""


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.parametrize(
    ("places", "by"),
    [
        pytest.param(FEW, ("client", "queue"), id="few"),
        *(pytest.param(range(7), by, id=f"all by {by[0]}") for by in EVERYTHING_BY),
    ],
)
def test_each_of_many_runs_has_the_figures_that_it_has_alone(
    places: Sequence[int], by: tuple[str, ...], all_runs: list[Path], computed: SparkOptions | None
) -> None:
    runs = [all_runs[place] for place in places]
    together = job.summarize_runs(runs, by=by, measures=job.ALL, options=computed)
    alone = {str(each): job.summarize_runs([each], by=by, measures=job.ALL, options=computed) for each in runs}
    assert len({facts.run_id for facts in together.facts}) == len(runs)
    for facts in together.facts:
        own = rows_of(alone[facts.folder], None)
        assert rows_of(together, facts.run_id) == own, facts.folder
        assert own["queues"]
    assert {"windows", "depth", "slow_subscribers", "connections", "intervals"} < set(together.tables)


@pytest.mark.slow
@pytest.mark.spark
def test_clients_are_chosen_in_each_of_many_runs_by_name_in_fewer_jobs(all_runs: list[Path], spark: Any) -> None:
    runs = all_runs[:2]
    measures = {"queues", "depth", "littles_law"}
    chosen = "desks/3"  # which the second run alone has
    with jobs_of(spark) as jobs_of_both:
        together = job.summarize(spark, runs, measures=measures, clients=[chosen])
    assert {each.client for each in together.queues} == {chosen}
    with jobs_of(spark) as jobs_of_one:
        alone = job.summarize(spark, [runs[1]], measures=measures, clients=[chosen])
    assert 0 < len(jobs_of_both) < 2 * len(jobs_of_one)
    assert rows_of(together, together.facts[1].run_id) == rows_of(alone, None)
    assert rows_of(together, together.facts[0].run_id) == {}


@pytest.mark.slow
@pytest.mark.spark
def test_frames_for_programs_have_the_rows_of_the_summary_and_the_facts_of_each_run(
    all_runs: list[Path], spark: Any
) -> None:
    runs = [all_runs[1], all_runs[-1]]
    asked = {"losses", "windows"}
    frames = summary_frames(spark, [str(each) for each in runs], by=["queue"], measures=asked)
    assert set(frames) == {"runs", *asked}
    assert len(frames) == 3
    with pytest.raises(KeyError):
        frames["depth"]
    with jobs_of(spark) as jobs:
        windows = frames["windows"]
    assert jobs == [], "a table in time is computed when it is used"
    summary = job.summarize(spark, runs, by=["queue"], measures=asked)
    for name in asked:
        found = sorted(map(repr, frames[name].toArrow().to_pylist()))
        assert found == sorted(map(repr, summary.tables[name])), name
    joined = windows.join(frames["runs"], "run_id").selectExpr(
        "scenario", "window_start_time is null as is_virtual",
        "abs(unix_micros(window_start_time) - unix_micros(started_at) - window_start_ns div 1000) as off_microseconds",
    )  # fmt: skip
    rows = joined.distinct().toArrow().to_pylist()
    assert {(row["scenario"], row["is_virtual"]) for row in rows} == {("burst", True), ("Shop", False)}
    assert all(row["off_microseconds"] <= 1 for row in rows if not row["is_virtual"])
