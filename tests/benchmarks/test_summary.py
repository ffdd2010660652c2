"""How long a summary takes, against DuckDB on the same files, against a log of a tenth, and on two executors.

Run it with `pytest tests/benchmarks/test_summary.py`; QSCTL_BENCHMARK_MESSAGES says how many messages there are
(1,000,000 unless given). The ratios are held from ten million messages on, the growth at a hundred million.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterator
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
    describe_part,
    part_folder,
    write_run_info,
)
from qsctl.eventlog.schema import COUNTERS, MESSAGES
from qsctl.instant import SECOND_NS
from qsctl.summary import job
from qsctl.summary.measures.tables import MESSAGES as MESSAGES_SHAPE
from qsctl.summary.recorded_run import read_run
from qsctl.summary.spark.session import SparkOptions, spark_session, stop_spark
from tests.benchmarks.ratios import keep_ratio

MESSAGES_WANTED = int(os.environ.get("QSCTL_BENCHMARK_MESSAGES", "1000000"))
RUN = os.environ.get("QSCTL_BENCHMARK_RUN", "")
"""A run folder of the simulator's own, instead of the made one."""
HORIZON_NS = 100 * SECOND_NS
CHUNK = 1_000_000
QUEUES = ("G-1", "D-1", "D-2", "D-3", "C-1")
OUTCOMES = ("delivered", "discarded")
OPTIONS = SparkOptions(master="local[*]")
LARGE = 10_000_000
"""From here on the ratios are held: a smaller log takes as long as its queries are planned."""
WARM_UP_ROUNDS = 3
"""Java still compiles in the second round."""
WARM_MESSAGES = 120_000_000
"""Each executor compiles for itself, and sees half of the tasks where there are two: it is warm after so many."""
MEBIBYTE = 1 << 20


def best(rounds: int, call: Callable[[], object]) -> float:
    """Seconds of the fastest call."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return min(taken)


def chunk(number: int, count: int, total: int, draw: np.random.Generator) -> pa.Table:
    span = HORIZON_NS * CHUNK // max(CHUNK, total)
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
    """The run that was asked for."""
    return Path(RUN) if RUN else made_run(tmp_path_factory.mktemp("run"), MESSAGES_WANTED)


def made_run(made: Path, total: int) -> Path:
    """A run of 100 clients and five queues."""
    draw = np.random.default_rng(1)
    part_folder(made, "messages", 0).mkdir(parents=True)
    part_folder(made, "counters", 0).mkdir(parents=True)
    for number in range(-(-total // CHUNK)):
        rows = min(CHUNK, total - number * CHUNK)
        pq.write_table(
            chunk(number, rows, total, draw),
            part_folder(made, "messages", 0) / f"part-{number:05}.parquet",
            compression="none",
            use_dictionary=["run_id", "client_id", "queue", "outcome", "work_units"],
            write_page_checksum=True,
        )
    empty = {field.name: [] if pa.types.is_list(field.type) else 0 for field in COUNTERS}
    rows = [
        {**empty, "run_id": "benchmark", "client_id": client, "client": f"c{client}", "queue": queue}
        for client in range(100)
        for queue in QUEUES
    ]
    pq.write_table(
        pa.Table.from_pylist(rows, schema=COUNTERS),
        part_folder(made, "counters", 0) / "part-00000.parquet",
        write_page_checksum=True,
    )
    write_run_info(
        made,
        RunInfo(
            run_id="benchmark", status=RunStatus.COMPLETE, scenario="benchmark", model="solace", seed=1,
            log_level="messages", horizon_ns=HORIZON_NS, warm_up_ns=0, replications=1,
            done=(
                ReplicationInfo(
                    replication=0, complete=True, simulated_ns=HORIZON_NS, messages=total, message_rows=total,
                ),
            ),
            files={
                part.relative_to(made).as_posix(): describe_part(part, pq.read_metadata(part).num_rows)
                for part in made.rglob("*.parquet")
            },
        ),
    )  # fmt: skip
    return made


def duckdb_summary(folder: Path) -> int:
    """Every measure as Spark computes it: counters, percentiles, times to done, windows, depth, Little's law,
    blocked seconds.
    """
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
    connection.execute(
        f"""select client_id, queue, count(acknowledge_ns), count(*) - count(acknowledge_ns), avg(acknowledge_ns),
        max(acknowledge_ns), quantile_disc(acknowledge_ns, [0.5, 0.9, 0.95, 0.99, 0.999])
        from {log} where outcome = 'delivered' group by all"""
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
    spark = spark_session(OPTIONS)
    run = read_run(folder)
    asked = {"measures": job.ALL, "options": OPTIONS}

    def scan() -> None:
        # A frame of its own each time: one that was collected keeps what its stages gave.
        log = spark.read.schema(MESSAGES_SHAPE).parquet(str(folder / "messages"))
        log.selectExpr("sum(client_id)", "sum(enqueued_ns)", "sum(wait_ns)", "sum(work_units)", "max(queue)").collect()

    rounds = 3 if run.bytes < 1e9 else 1
    best(WARM_UP_ROUNDS, lambda: job.summarize_run(folder, **asked))
    compiled = getattr(spark._jvm.org.apache.spark.metrics.source, "CodegenMetrics$")
    compilations = getattr(compiled, "MODULE$").METRIC_COMPILATION_TIME()
    before = compilations.getCount()
    benchmark.pedantic(job.summarize_run, (folder,), asked, rounds=rounds)
    assert compilations.getCount() - before < 20 * rounds, "a round finds the code of those before"
    ours = benchmark.stats.stats.min
    duckdb_summary(folder)
    other = best(rounds, lambda: duckdb_summary(folder))
    scanned = best(rounds, scan)
    checked = best(1, lambda: read_run(folder))
    assert checked <= 0.1 * ours, "what compares the files with their checksums"
    benchmark.extra_info |= {
        "messages": run.message_rows, "spark_seconds": ours, "duckdb_seconds": other, "scan_seconds": scanned,
        "ratio_to_duckdb": ours / other, "ratio_to_scan": ours / scanned, "check_seconds": checked,
    }  # fmt: skip
    keep_ratio(f"summary of {run.message_rows} messages to DuckDB", ours / other, higher_is_better=False)
    if run.message_rows >= LARGE:
        assert ours <= 5 * other


def test_a_summary_without_java_takes_at_most_three_times_what_duckdb_takes(folder: Path, benchmark: Any) -> None:
    """All measures by the engine that one machine has by default, checksums of whole files included.

    The bound is 2.8 on the made log, 4 on a log of a simulation, whose clients are many and whose bursts are short.
    """
    pytest.importorskip("duckdb")
    run = read_run(folder)
    if run.bytes > job.LOCAL_BYTES:
        pytest.skip(f"{run.bytes} bytes are summarized by Spark")
    rounds = 3 if run.bytes < 1e9 else 1
    benchmark.pedantic(job.summarize_run, (folder,), {"measures": job.ALL}, rounds=rounds, warmup_rounds=1)
    ours = benchmark.stats.stats.min
    other = best(rounds + 1, lambda: duckdb_summary(folder))
    benchmark.extra_info |= {"messages": run.message_rows, "seconds": ours, "duckdb_seconds": other}
    keep_ratio(f"summary without Java of {run.message_rows} messages to DuckDB", ours / other, higher_is_better=False)
    if run.message_rows >= LARGE:
        assert ours <= (4 if RUN else 2.8) * other


@pytest.mark.skipif(MESSAGES_WANTED < 10 * LARGE, reason="QSCTL_BENCHMARK_MESSAGES=100000000 shows the growth")
def test_ten_times_the_messages_take_ten_times_as_long_in_the_same_memory(
    folder: Path, tmp_path: Path, benchmark: Any
) -> None:
    tenth = made_run(tmp_path / "tenth", read_run(folder).message_rows // 10)

    def summarize(run: Path) -> object:
        return job.summarize_run(run, measures=job.ALL, options=OPTIONS)

    best(WARM_UP_ROUNDS, lambda: summarize(tenth))
    small, peak_kibibytes = best(3, lambda: summarize(tenth)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    large = benchmark.pedantic(lambda: best(1, lambda: summarize(folder)), rounds=1)
    grown_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kibibytes)
    benchmark.extra_info |= {"seconds": large, "seconds_of_a_tenth": small, "driver_grown_bytes": grown_bytes}
    assert large <= 12 * small
    assert grown_bytes <= 64 * MEBIBYTE


def confine(count: int) -> None:
    """Give each executor a processor of its own: of one core is one that also compiles and collects there, no more."""
    found = [
        int(place.parent.name)
        for place in Path("/proc").glob("[0-9]*/cmdline")
        if "CoarseGrainedExecutorBackend" in read_or_nothing(place) and belongs_to(os.getpid(), int(place.parent.name))
    ]
    assert len(found) == count, found
    for processor, executor in zip(sorted(os.sched_getaffinity(0)), sorted(found), strict=False):
        for thread in Path(f"/proc/{executor}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # it is over
                os.sched_setaffinity(int(thread.name), {processor})


def read_or_nothing(place: Path) -> str:
    """What a file of the system says; nothing where its process is over."""
    try:
        return place.read_text(errors="replace")
    except OSError:
        return ""


def belongs_to(ancestor: int, process: int) -> bool:
    """Whether a process was started by another, or by one that it started."""
    while process > 1 and process != ancestor:
        status = read_or_nothing(Path(f"/proc/{process}/status"))
        process = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:")), 0)
    return process == ancestor


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], SparkOptions]]:
    """Options of a small cluster on this machine: so many executors of one core each."""
    import pyspark

    # Without it a worker that Spark's own scripts did not start looks for a place where Spark was built.
    core = next((Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar"))
    monkeypatch.setenv("SPARK_SCALA_VERSION", core.name.removeprefix("spark-core_").partition("-")[0])
    # Java starts as many threads that compile and collect garbage as there are processors; `confine` keeps them there.
    one_core = {"spark.executor.extraJavaOptions": "-XX:ActiveProcessorCount=1"}
    yield lambda count: SparkOptions(master=f"local-cluster[{count},1,1024]", conf=one_core)
    stop_spark()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two executors need two processors")
def test_two_executors_are_nearly_twice_as_fast_as_one(
    folder: Path, executors: Callable[[int], SparkOptions], benchmark: Any
) -> None:
    rounds = 2 + -(-WARM_MESSAGES // max(LARGE, read_run(folder).message_rows))
    taken = {}
    for count in (1, 2):
        asked = {"measures": job.ALL, "options": executors(count)}
        job.summarize_run(folder, **asked)  # the executors are there afterwards
        confine(count)
        taken[count] = best(rounds, lambda asked=asked: job.summarize_run(folder, **asked))
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info |= {"one": taken[1], "two": taken[2], "ratio": taken[1] / taken[2]}
    if read_run(folder).message_rows >= LARGE:
        assert taken[1] >= 1.7 * taken[2]
