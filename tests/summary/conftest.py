"""The engines that compute summaries, one local Spark session for the suite, and run folders written by hand.

The statements of measures are one text, which this process computes by DuckDB, or Spark. A test of what they mean asks
for `computed`: ordinarily it is computed here, and in a campaign on Spark, too. That both give the same rows of every
measure, in each run of the suite, is `test_local.py`.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from qsctl.eventlog.outcomes import DISCARDS, LOSSES, Outcome, column_of
from qsctl.eventlog.run_folder import (
    FileInfo,
    ReplicationInfo,
    RunInfo,
    RunStatus,
    describe_part,
    part_folder,
    write_run_info,
)
from qsctl.eventlog.schema import COUNTERS, MESSAGES, LogLevel, bucket_of
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.summary.spark.session import SparkOptions, spark_session
from tests.campaigns import is_campaign

MASTER = "local[2]"
RECORDING = Path(__file__).parents[2] / "fixtures/recordings/monday"
DEAD = {"horizon": "1s", "group[worker]/loss": "0.05", "durable-queue[work]/flow[*]/rejects": "0.1"}


@pytest.fixture(scope="session")
def all_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs that differ in everything that a plan of several has to tell apart."""
    place = tmp_path_factory.mktemp("runs")
    made = []
    for name, overrides, count, level in (
        ("burst", {"horizon": "300ms", "warm-up": "50ms", "group[desks]/count": "2"}, 3, LogLevel.MESSAGES),
        ("burst", {"horizon": "200ms", "group[desks]/count": "3"}, 1, LogLevel.MESSAGES),
        ("dead-messages", DEAD, 1, LogLevel.EVENTS),
        ("slow-subscriber", {"horizon": "4s", "warm-up": "1s"}, 1, LogLevel.EVENTS),
        ("burst", {"horizon": "250ms", "group[desks]/count": "2"}, 2, LogLevel.COUNTERS),
    ):
        scenario = apply_overrides(read_scenario(find_scenario(name)), overrides)
        made.append(run(scenario, place / f"a {len(made)}%", replications=count, level=level, workers=1).folder)
    copy = shutil.copytree(made[0], place / "it's [a] {copy}")
    return [*made, copy, RECORDING]


@pytest.fixture
def options() -> SparkOptions:
    """The settings that the suite shares, so that it starts Java once."""
    return SparkOptions(master=MASTER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have tests that ask for `computed` computed by this process, and in a campaign once more by Spark."""
    if "computed" in metafunc.fixturenames:
        on_spark = pytest.param("on spark", marks=(pytest.mark.spark, pytest.mark.campaign))
        metafunc.parametrize("computed", ["here", *([on_spark] if is_campaign() else [])], indirect=True)


@pytest.fixture
def computed(request: pytest.FixtureRequest, options: SparkOptions) -> SparkOptions | None:
    """Options of what computes summaries: None is this process."""
    return options if request.param == "on spark" else None


@pytest.fixture
def spark(options: SparkOptions) -> Any:
    return spark_session(options, brief=True)


@pytest.fixture(autouse=True)
def as_strict_as_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what Spark Connect refuses and a session of this process takes; Connect itself is in a campaign."""
    plain = SparkSession.createDataFrame

    def strict(session: SparkSession, data: Any, *rest: Any, **named: Any) -> Any:
        assert not isinstance(data, pa.Table) or data.num_rows, "Spark Connect makes no frame of a table without rows"
        return plain(session, data, *rest, **named)

    monkeypatch.setattr(SparkSession, "createDataFrame", strict)


@dataclass(frozen=True)
class MadeRun:
    """A run folder and the rows in it."""

    folder: Path
    messages: list[dict[str, Any]]
    counters: list[dict[str, Any]]
    warm_up_ns: int
    horizon_ns: int


def message(**values: Any) -> dict[str, Any]:
    """A message row; what is not said is a plain delivered message."""
    row = {
        "run_id": "made", "replication": 0, "client_id": 0, "queue": "D-1", "topic_id": 0, "size_bytes": 100,
        "work_units": 1, "enqueued_ns": 0, "enter_ns": 0, "wait_ns": 0, "send_ns": None, "acknowledge_ns": None,
        "outcome": "delivered", "discard_indication": False, "attempts": 1,
    }  # fmt: skip
    assert set(values) <= set(row)
    return {**row, **values}


def counted(
    rows: list[dict[str, Any]], names: dict[int, str], warm_up_ns: int, horizon_ns: int
) -> list[dict[str, Any]]:
    """The counters of message rows, straight from their definition: what a simulator would have counted."""
    groups: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["replication"], row["client_id"], row["queue"]), []).append(row)
    counters = []
    for (replication, client_id, queue), members in sorted(groups.items()):
        left = [
            row for row in members
            if row["wait_ns"] is not None and row["enqueued_ns"] + row["wait_ns"] >= warm_up_ns
        ]  # fmt: skip
        sent = [row for row in left if row["outcome"] == "delivered"]
        discarded = [row for row in left if row["outcome"] in {outcome.value for outcome in DISCARDS}]
        held = [row for row in members if row["outcome"] == "held"]
        acknowledged = queue == "G-1"
        done = [row["acknowledge_ns"] for row in sent if row["acknowledge_ns"] is not None]
        there = [row for row in members if row["outcome"] in {"held", "waiting"}]
        there += [row for row in sent if row["acknowledge_ns"] is None]
        ages = [horizon_ns - row["enqueued_ns"] for row in there]
        times = {"done": Counter(map(bucket_of, done)), "unfinished": Counter(map(bucket_of, ages))}
        buckets: dict[int, int] = {}
        for row in sent:
            buckets[bucket_of(row["wait_ns"])] = buckets.get(bucket_of(row["wait_ns"]), 0) + 1
        counters.append(
            {
                "run_id": "made",
                "replication": replication,
                "client_id": client_id,
                "client": names[client_id],
                "queue": queue,
                "arrived_messages": sum(row["enqueued_ns"] >= warm_up_ns for row in members),
                "delivered_messages": len(sent),
                **{
                    column_of(kind): sum(row["outcome"] == kind.value for row in left)
                    for kind in (*LOSSES, Outcome.ELIDED)
                },
                "evicted_messages": 3,
                "redelivered_messages": sum(
                    max(0, row["attempts"] - 1)
                    for row in members
                    if row in left or row["outcome"] == "held" or row["wait_ns"] is None
                ),
                "discard_indications": sum(row["discard_indication"] for row in left),
                "delivered_bytes": sum(row["size_bytes"] for row in sent),
                "length_messages": len(held),
                "length_work_units": sum(row["work_units"] for row in held),
                "unacknowledged_messages": sum(row["wait_ns"] is not None for row in held),
                "waiting_messages": sum(row["outcome"] == "waiting" for row in members),
                "high_water_mark_work_units": 7,
                "max_depth_work_units": 20,
                "first_discard_ns": min((row["enqueued_ns"] + row["wait_ns"] for row in discarded), default=None),
                "wait_sum_ns": sum(row["wait_ns"] for row in sent),
                "wait_max_ns": max((row["wait_ns"] for row in sent), default=0),
                "observed_ns": horizon_ns - warm_up_ns,
                "histogram_bucket": sorted(buckets),
                "histogram_count": [buckets[bucket] for bucket in sorted(buckets)],
                "done_messages": len(done) if acknowledged else None,
                "done_sum_ns": sum(done) if acknowledged else None,
                "done_max_ns": max(done, default=0) if acknowledged else None,
                "unfinished_messages": len(ages) if acknowledged else None,
                "unfinished_max_ns": max(ages, default=0) if acknowledged else None,
                **{f"{name}_bucket": sorted(each) if acknowledged else [] for name, each in times.items()},
                **{
                    f"{name}_count": [each[bucket] for bucket in sorted(each)] if acknowledged else []
                    for name, each in times.items()
                },
            }
        )
    return counters


def random_messages(seed: int, count: int, replications: int, horizon_ns: int) -> list[dict[str, Any]]:
    """Message rows with every outcome, and waits from nothing to minutes."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        enqueued = draw.randrange(horizon_ns)
        room = horizon_ns - enqueued
        wait: int | None = min(int(draw.lognormvariate(15, 3)), room - 1)
        outcome = draw.choices(
            ["delivered", "elided", "held", *(each.value for each in LOSSES)], [80, 3, 4] + len(LOSSES) * [2]
        )[0]
        if outcome == "held":
            wait = None if draw.random() < 0.5 else wait
            outcome = "waiting" if wait is None and draw.random() < 0.4 else outcome
        size = draw.randint(1, 9000)
        acknowledge = wait + draw.randrange(SECOND_NS) if wait is not None and outcome == "delivered" else None
        if draw.random() < 0.1:
            acknowledge = None
        rows.append(
            message(
                replication=number % replications, client_id=draw.randrange(3),
                queue=draw.choice(["G-1", "D-1", "C-1"]),
                topic_id=draw.randrange(4), size_bytes=size, work_units=-(-size // 2048), enqueued_ns=enqueued,
                enter_ns=None if outcome == "waiting" else 0, wait_ns=wait, outcome=outcome,
                acknowledge_ns=acknowledge,
                discard_indication=draw.random() < 0.05,
                attempts=draw.choice([1, 1, 1, 2, 3]),
            )
        )  # fmt: skip
    return rows


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., MadeRun]:
    """Write rows as a run folder, as a simulator does."""
    made = iter(range(1000))

    def make(
        messages: list[dict[str, Any]],
        *,
        warm_up_ns: int = 0,
        horizon_ns: int = 10 * SECOND_NS,
        level: str = "messages",
        status: RunStatus = RunStatus.COMPLETE,
    ) -> MadeRun:
        folder = tmp_path / f"made-{next(made)}"
        names = {client: f"client-{client}" for client in range(10)}
        counters = counted(messages, names, warm_up_ns, horizon_ns)
        files: dict[str, FileInfo] = {}
        for table, schema, rows in (("messages", MESSAGES, messages), ("counters", COUNTERS, counters)):
            if table == "messages" and level == "counters":
                continue
            for replication in {row["replication"] for row in messages}:
                place = part_folder(folder, table, replication)
                place.mkdir(parents=True)
                mine = [
                    {name: value for name, value in row.items() if name != "replication"}
                    for row in rows
                    if row["replication"] == replication
                ]
                part = place / "part-00000.parquet"
                pq.write_table(pa.Table.from_pylist(mine, schema=schema), part, write_page_checksum=True)
                files[part.relative_to(folder).as_posix()] = describe_part(part, len(mine))
        replications = len({row["replication"] for row in messages})
        write_run_info(
            folder,
            RunInfo(
                run_id=folder.name, status=status, scenario="made", model="solace", seed=1, log_level=level,
                horizon_ns=horizon_ns, warm_up_ns=warm_up_ns, replications=replications,
                done=tuple(
                    ReplicationInfo(
                        replication=number, complete=True, simulated_ns=horizon_ns, messages=0,
                        message_rows=sum(row["replication"] == number for row in messages if level != "counters"),
                    )
                    for number in range(replications)
                ),
                files=files,
            ),
        )  # fmt: skip
        return MadeRun(folder, messages, counters, warm_up_ns, horizon_ns)

    return make


@pytest.fixture
def made_run(make_run: Callable[..., MadeRun]) -> Iterator[MadeRun]:
    """A run with every outcome, three replications, and a warm-up in the middle of things."""
    horizon_ns = 200 * SECOND_NS
    yield make_run(
        random_messages(7, 6000, 3, horizon_ns), warm_up_ns=20 * SECOND_NS + MILLISECOND_NS, horizon_ns=horizon_ns
    )
