"""How long a summary takes, against DuckDB on the same files and against one bare scan of the columns.

Run it with `pytest tests/benchmarks/test_summary.py`; QSCTL_BENCHMARK_MESSAGES says how many messages there are
(1,000,000 unless given; 10,000,000 and 100,000,000 show the growth).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qsctl.eventlog.run_folder import (
    ReplicationInfo,
    RunInfo,
    RunStatus,
    describe_file,
    part_folder,
    write_run_info,
)
from qsctl.eventlog.schema import COUNTERS, MESSAGES
from qsctl.instant import SECOND_NS
from qsctl.summary import job
from qsctl.summary.recorded_run import read_run
from qsctl.summary.session import SparkOptions, spark_session

MESSAGES_WANTED = int(os.environ.get("QSCTL_BENCHMARK_MESSAGES", "1000000"))
HORIZON_NS = 100 * SECOND_NS
CHUNK = 1_000_000
QUEUES = ("G-1", "D-1", "D-2", "D-3", "C-1")
OUTCOMES = ("delivered", "discarded")
OPTIONS = SparkOptions(master="local[*]")


def chunk(number: int, count: int, draw: np.random.Generator) -> pa.Table:
    span = HORIZON_NS * CHUNK // max(CHUNK, MESSAGES_WANTED)
    enqueued = np.sort(draw.integers(0, span, count)) + number * span
    wait = draw.lognormal(13, 2, count).astype(np.int64)
    sizes = draw.integers(64, 9000, count).astype(np.int32)
    columns: dict[str, Any] = {
        "run_id": pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), ["benchmark"]),
        "client_id": pa.array(draw.integers(0, 100, count).astype(np.int32)),
        "queue": pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, 5, count).astype(np.int32)), list(QUEUES)),
        "topic_id": pa.array(np.zeros(count, np.int32)),
        "size_bytes": pa.array(sizes),
        "work_units": pa.array(((sizes + 2047) // 2048).astype(np.int32)),
        "enqueued_ns": pa.array(enqueued),
        "wait_ns": pa.array(wait),
        "send_ns": pa.array(wait + 1000),
        "acknowledge_ns": pa.array(wait + 1_000_000),
        "outcome": pa.DictionaryArray.from_arrays(
            pa.array((draw.random(count) < 0.02).astype(np.int32)), list(OUTCOMES)
        ),
        "discard_indication": pa.array(np.zeros(count, np.bool_)),
        "attempts": pa.array(np.ones(count, np.int16)),
    }
    return pa.Table.from_arrays([columns[field.name] for field in MESSAGES], schema=MESSAGES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 100 clients and five queues."""
    made = tmp_path_factory.mktemp("run")
    draw = np.random.default_rng(1)
    part_folder(made, "messages", 0).mkdir(parents=True)
    part_folder(made, "counters", 0).mkdir(parents=True)
    for number in range(-(-MESSAGES_WANTED // CHUNK)):
        rows = min(CHUNK, MESSAGES_WANTED - number * CHUNK)
        pq.write_table(
            chunk(number, rows, draw),
            part_folder(made, "messages", 0) / f"part-{number:05}.parquet",
            compression="none",
            use_dictionary=["run_id", "client_id", "queue", "outcome", "work_units"],
        )
    empty = {field.name: 0 for field in COUNTERS} | {"histogram_bucket": [], "histogram_count": []}
    rows = [
        {**empty, "run_id": "benchmark", "client_id": client, "client": f"c{client}", "queue": queue}
        for client in range(100)
        for queue in QUEUES
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=COUNTERS), part_folder(made, "counters", 0) / "part-00000.parquet")
    write_run_info(
        made,
        RunInfo(
            run_id="benchmark", status=RunStatus.COMPLETE, scenario="benchmark", model="solace", seed=1,
            log_level="messages", horizon_ns=HORIZON_NS, warm_up_ns=0, replications=1,
            done=(
                ReplicationInfo(
                    replication=0, complete=True, simulated_ns=HORIZON_NS, messages=MESSAGES_WANTED,
                    message_rows=MESSAGES_WANTED,
                ),
            ),
            files={
                part.relative_to(made).as_posix(): describe_file(part, pq.read_metadata(part).num_rows)
                for part in made.rglob("*.parquet")
            },
        ),
    )  # fmt: skip
    return made


def duckdb_summary(folder: Path) -> int:
    """Counters, exact percentiles, windows and depth, as Spark computes them."""
    import duckdb

    log = f"read_parquet('{folder}/messages/*/*.parquet')"
    connection = duckdb.connect()
    figures = connection.execute(
        f"""select client_id, queue, count(*), count(*) filter (outcome = 'delivered'),
        count(*) filter (outcome = 'discarded'), sum(size_bytes), sum(wait_ns), max(wait_ns),
        min(enqueued_ns + wait_ns) filter (outcome = 'discarded'),
        quantile_disc(wait_ns, [0.5, 0.9, 0.95, 0.99, 0.999]) filter (outcome = 'delivered')
        from {log} group by all"""
    ).fetchall()
    connection.execute(
        f"""with entered as (select client_id, queue, enqueued_ns // {SECOND_NS} w, count(*) n, sum(work_units) u
            from {log} group by all),
        gone as (select client_id, queue, (enqueued_ns + wait_ns) // {SECOND_NS} w, count(*) n, sum(work_units) u,
            sum(size_bytes) b from {log} group by all)
        select client_id, queue, w, sum(coalesce(entered.u, 0) - coalesce(gone.u, 0))
            over (partition by client_id, queue order by w)
        from entered full join gone using (client_id, queue, w)"""
    ).fetchall()
    return len(figures)


def test_a_summary_takes_at_most_four_times_duckdb(folder: Path, benchmark: Any) -> None:
    spark = spark_session(OPTIONS)
    run = read_run(folder)
    measures = {"queues", "delays", "windows", "depth"}
    job.summarize_run(folder, measures=measures, options=OPTIONS)  # Java compiles what it needs
    began = time.perf_counter()
    scan = job.read_messages(spark, run)
    scan.selectExpr("sum(client_id)", "sum(enqueued_ns)", "sum(wait_ns)", "sum(work_units)", "max(queue)").collect()
    scanned = time.perf_counter() - began
    duckdb_summary(folder)
    began = time.perf_counter()
    assert duckdb_summary(folder) == 500
    other = time.perf_counter() - began
    benchmark.pedantic(
        job.summarize_run, (folder,), {"measures": measures, "options": OPTIONS}, rounds=2 if run.bytes < 1e9 else 1
    )
    ours = benchmark.stats.stats.min
    began = time.perf_counter()
    read_run(folder)
    checked = time.perf_counter() - began
    assert checked <= 0.05 * ours, "what compares the files with their checksums"
    benchmark.extra_info |= {
        "messages": MESSAGES_WANTED, "spark_seconds": ours, "duckdb_seconds": other, "scan_seconds": scanned,
        "ratio_to_duckdb": ours / other, "ratio_to_scan": ours / scanned, "check_seconds": checked,
    }  # fmt: skip
    if MESSAGES_WANTED >= 100_000_000:
        assert ours <= 4 * other
