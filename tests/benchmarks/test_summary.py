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
from qsctl.summary.tables import MESSAGES as MESSAGES_SHAPE

MESSAGES_WANTED = int(os.environ.get("QSCTL_BENCHMARK_MESSAGES", "1000000"))
RUN = os.environ.get("QSCTL_BENCHMARK_RUN", "")
"""A run folder of the simulator's own, instead of the made one."""
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
        "enter_ns": pa.array(np.zeros(count, np.int64)),
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
    """Every measure as Spark computes it: counters, percentiles, windows, depth, Little's law, blocked seconds."""
    import duckdb

    log = f"read_parquet('{folder}/messages/*/*.parquet')"
    connection = duckdb.connect()
    figures = connection.execute(
        f"""select client_id, queue, count(*), count(*) filter (outcome = 'delivered'),
        count(*) filter (outcome = 'discarded'), count(*) filter (outcome = 'elided'),
        count(*) filter (outcome = 'held'), sum(greatest(attempts - 1, 0)), count(*) filter (discard_indication),
        sum(size_bytes) filter (outcome = 'delivered'), sum(work_units) filter (outcome = 'held'),
        sum(wait_ns) filter (outcome = 'delivered'), max(wait_ns) filter (outcome = 'delivered'),
        min(enqueued_ns + wait_ns) filter (outcome = 'discarded'),
        quantile_disc(wait_ns, [0.5, 0.9, 0.95, 0.99, 0.999]) filter (outcome = 'delivered')
        from {log} group by all"""
    ).fetchall()
    keys = "client_id, queue, w"
    connection.execute(
        f"""with arrived as (select client_id, queue, enqueued_ns // {SECOND_NS} w, count(*) n from {log} group by all),
        entered as (select client_id, queue, (enqueued_ns + enter_ns) // {SECOND_NS} w, count(*) en, sum(work_units) eu
            from {log} group by all),
        gone as (select client_id, queue, (enqueued_ns + wait_ns) // {SECOND_NS} w, count(*) gn, sum(work_units) gu,
            count(*) filter (outcome = 'delivered') dn, count(*) filter (outcome = 'discarded') xn,
            sum(size_bytes) filter (outcome = 'delivered') b from {log} group by all)
        select {keys}, n, dn, xn, b, sum(coalesce(en, 0) - coalesce(gn, 0)) over so_far,
            sum(coalesce(eu, 0) - coalesce(gu, 0)) over so_far
        from arrived full join entered using ({keys}) full join gone using ({keys})
        window so_far as (partition by client_id, queue order by w)"""
    ).fetchall()
    connection.execute(
        f"""select client_id, queue, count(*), sum(wait_ns - enter_ns),
        sum(greatest(0, least(coalesce(enqueued_ns + wait_ns, {HORIZON_NS}), {HORIZON_NS}) - (enqueued_ns + enter_ns)))
        from {log} group by all"""
    ).fetchall()
    half = SECOND_NS // 2
    connection.execute(
        f"""with steps as (
            select client_id, unnest([start, stop]) as half, unnest([n, -n]) as step from (
                select client_id, (enqueued_ns + enter_ns + {half - 1}) // {half} as start,
                    coalesce(enqueued_ns + wait_ns, {HORIZON_NS}) // {half} as stop, count(*) as n
                from {log} group by all)
            where start < stop),
        levels as (
            select client_id, half, sum(sum(step)) over (partition by client_id order by half) as level,
                lead(half) over (partition by client_id order by half) as until
            from steps group by client_id, half),
        blocked as (select distinct client_id, unnest(range(half, until)) // 2 as second from levels where level > 0)
        select client_id, count(*), max(recent) from (
            select client_id, count(*) over (partition by client_id order by second range 59 preceding) as recent
            from blocked) group by client_id"""
    ).fetchall()
    return len(figures)


def test_a_summary_takes_at_most_five_times_duckdb(folder: Path, benchmark: Any) -> None:
    """All measures, warm; from ten million messages on the ratio is held."""
    pytest.importorskip("duckdb")
    folder = Path(RUN) if RUN else folder
    spark = spark_session(OPTIONS)
    run = read_run(folder)
    asked = {"measures": job.ALL, "options": OPTIONS}
    job.summarize_run(folder, **asked)  # Java compiles what it needs
    began = time.perf_counter()
    scan = spark.read.schema(MESSAGES_SHAPE).parquet(str(folder / "messages"))
    scan.selectExpr("sum(client_id)", "sum(enqueued_ns)", "sum(wait_ns)", "sum(work_units)", "max(queue)").collect()
    scanned = time.perf_counter() - began
    duckdb_summary(folder)
    began = time.perf_counter()
    assert duckdb_summary(folder) > 0
    other = time.perf_counter() - began
    benchmark.pedantic(job.summarize_run, (folder,), asked, rounds=3 if run.bytes < 1e9 else 1)
    ours = benchmark.stats.stats.min
    began = time.perf_counter()
    read_run(folder)
    checked = time.perf_counter() - began
    assert checked <= 0.1 * ours, "what compares the files with their checksums"
    benchmark.extra_info |= {
        "messages": run.message_rows, "spark_seconds": ours, "duckdb_seconds": other, "scan_seconds": scanned,
        "ratio_to_duckdb": ours / other, "ratio_to_scan": ours / scanned, "check_seconds": checked,
    }  # fmt: skip
    if run.message_rows >= 10_000_000:
        assert ours <= 5 * other
