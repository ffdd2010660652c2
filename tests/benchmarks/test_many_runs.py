"""Measures a summary of many runs in one plan against the same runs one by one; equal to DuckDB's figures.

Run it with `pytest tests/benchmarks/test_many_runs.py`; QSCTL_BENCHMARK_RUNS says how many runs there are (20 unless
given). One by one are at most 20 of them, of which the time of all is computed.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qsctl.eventlog.run_folder import read_run_info, write_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.summary import job
from qsctl.summary.spark.session import SparkOptions, spark_session
from tests.benchmarks.ratios import keep_ratio

RUNS = int(os.environ.get("QSCTL_BENCHMARK_RUNS", "20"))
ALONE = 20
SIMULATED = 5
"""Runs with seeds of their own; the others are their copies with other names."""


def made_runs(place: Path, count: int) -> list[Path]:
    """Return folders of short runs, each with a name of its own."""
    scenario = apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "200ms"})
    made = []
    for number in range(count):
        folder = place / f"run-{number}"
        if number < SIMULATED:
            seeded = dataclasses.replace(scenario, seed=number)
            run(seeded, folder, replications=1, level=LogLevel.MESSAGES, workers=1)
        else:
            shutil.copytree(made[number % SIMULATED], folder)
            info = read_run_info(folder)
            write_run_info(folder, msgspec.structs.replace(info, run_id=f"{info.run_id}-{number}"))
        made.append(folder)
    return made


def duckdb_counts(runs: list[Path]) -> dict[tuple[str, str], tuple[int, int]]:
    """Delivered messages and the sum of their waits, of each run and queue."""
    import duckdb

    files = [str(part) for each in runs for part in each.glob("messages/*/*.parquet")]
    depth = len(runs[0].parts)
    rows = duckdb.sql(
        f"""select split_part(filename, '/', {depth}) as run, queue, count(*), sum(wait_ns)
        from read_parquet({files}, filename=true) where outcome = 'delivered' group by all"""
    ).fetchall()
    return {(name, queue): (messages, wait_ns) for name, queue, messages, wait_ns in rows}


def test_many_runs_in_one_plan_take_a_fraction_of_one_by_one(tmp_path: Path, benchmark: Any) -> None:
    pytest.importorskip("duckdb")
    runs = made_runs(tmp_path, RUNS)
    spark = spark_session(SparkOptions(master="local[2]"))
    for each in (runs[:3], runs[:1]):  # Java compiles
        job.summarize(spark, each, by=["queue"])
    some = runs[:ALONE]
    began = time.perf_counter()
    for each in some:
        job.summarize(spark, [each], by=["queue"])
    alone = (time.perf_counter() - began) * len(runs) / len(some)
    summary = benchmark.pedantic(lambda: job.summarize(spark, runs, by=["queue"]), rounds=1)
    together = benchmark.stats.stats.min
    names = {facts.run_id: Path(facts.folder).name for facts in summary.facts}
    found = {
        (names[each.run_id], each.queue): (each.delivered_messages, each.wait_sum_ns)
        for each in summary.queues
        if each.delivered_messages
    }
    assert found == duckdb_counts(runs)
    benchmark.extra_info |= {"runs": len(runs), "together_seconds": together, "alone_seconds": alone}
    keep_ratio(f"{len(runs)} runs in one plan to one by one", together / alone, higher_is_better=False)
    assert together <= 0.5 * alone
