"""The measures frame by frame: literal rows in, literal rows out, in the declared schema."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from qsctl.errors import Damaged
from qsctl.eventlog.schema import bucket_of
from qsctl.instant import SECOND_NS
from qsctl.summary.finishing.arrow import with_exact_sums
from qsctl.summary.finishing.done import times_to_done
from qsctl.summary.local._session import LocalSession
from qsctl.summary.measures import observation, tables
from qsctl.summary.measures.blocks import blocks, blocks_of
from qsctl.summary.measures.cells import cells
from qsctl.summary.measures.connections import connections
from qsctl.summary.measures.depth import depth
from qsctl.summary.measures.done import AcknowledgedRows, acknowledged_in, done_cells
from qsctl.summary.measures.littles_law import littles_law
from qsctl.summary.measures.moves import moves
from qsctl.summary.measures.observation import Holding, Observation
from qsctl.summary.measures.ranks import waits_at_ranks
from qsctl.summary.measures.slow_subscriber import slow_subscribers, with_recorded_percentages
from qsctl.summary.measures.throughput import windows
from qsctl.summary.spark.engine import SparkEngine
from qsctl.summary.spark.session import SparkOptions, spark_session

S = SECOND_NS
G_1_ALONE = AcknowledgedRows("queue = 'G-1'")
EVERY_KEY = ("run_id", "replication", "client_id", "queue", "topic_id")


@pytest.fixture
def session(computed: SparkOptions | None) -> Iterator[Any]:
    """The session that computes: DuckDB's session in this process, or Spark's."""
    if computed is not None:
        yield spark_session(computed, brief=True)
        return
    made = LocalSession()
    yield made
    made.close()


def of_rows(session: Any, rows: Sequence[tuple[Any, ...]], shape: tables.StructType) -> Any:
    """Return literal rows as a frame."""
    columns = list(zip(*rows, strict=True)) or [()] * len(shape.fields)
    schema = to_arrow_schema(shape)
    made = pa.table([pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema)
    return session.createDataFrame(made) if isinstance(session, LocalSession) else SparkEngine(session).frame(made)


def frame(session: Any, rows: Sequence[dict[str, Any]]) -> Any:
    """Message rows as they are read."""
    return of_rows(session, [tuple(row.get(field.name) for field in tables.MESSAGES) for row in rows], tables.MESSAGES)


def row(**values: Any) -> dict[str, Any]:
    return {
        "run_id": "r", "replication": 0, "client_id": 0, "queue": "D-1", "topic_id": 0, "size_bytes": 100,
        "work_units": 1, "enqueued_ns": 0, "enter_ns": None if values.get("outcome") == "waiting" else 0, "wait_ns": 0,
        "outcome": "delivered", "discard_indication": False, "attempts": 1, **values,
    }  # fmt: skip


def picked(found: Any, *names: str) -> set[tuple[Any, ...]]:
    rows = [tuple(each[name] for name in names) for each in found.toArrow().to_pylist()]
    assert len(set(rows)) == len(rows)
    return set(rows)


def measured(table: Any, keys: Sequence[str]) -> Any:
    """Return a declared table as its measure gives it: with the columns grouped by alone, clients by number, and
    without times of day, which only a whole table has.
    """
    names, number = tables._KEY_FIELDS, tables._INT
    of_keys = {**names, "client_id": number}
    own = [field for field in table.fields if field.name not in names and not field.name.endswith("_time")]
    return tables.StructType([*(tables.StructField(name, of_keys[name]) for name in keys), *own])


@pytest.mark.slow
@pytest.mark.spark
def test_every_measure_has_its_declared_schema(spark: Any) -> None:
    messages, seen, holding = frame(spark, [row()]), Observation(S, 2 * S), Holding(frozenset({1}))
    moved = moves(messages, seen, EVERY_KEY, S, holding)
    series = windows(moved, EVERY_KEY, S)
    events = of_rows(spark, [], tables.EVENTS)
    slow = slow_subscribers(moved, seen, EVERY_KEY)
    places = of_rows(spark, [], measured(tables.PLACES, EVERY_KEY))
    wanted = of_rows(spark, [], tables.WANTED_RANKS)
    for found, table in (
        (cells(messages, seen, EVERY_KEY, exact=True), measured(tables.CELLS, EVERY_KEY)),
        (cells(messages, seen, EVERY_KEY, exact=False), measured(tables.CELLS, EVERY_KEY)),
        (waits_at_ranks(messages, places, wanted, seen, EVERY_KEY, [(1, 2)]), tables.RANKED),
        (moved, measured(tables.MOVES, EVERY_KEY)),
        (series, measured(tables.WINDOWS, EVERY_KEY)),
        (depth(series, EVERY_KEY), measured(tables.DEPTH, EVERY_KEY)),
        (blocks(series, EVERY_KEY, blocks_of(seen, S)), measured(tables.BLOCKS, EVERY_KEY)),
        (littles_law(moved, seen, EVERY_KEY), measured(tables.LITTLES_LAW, EVERY_KEY)),
        (slow, measured(tables.SLOW_SUBSCRIBERS, EVERY_KEY)),
        (done_cells(messages, seen, EVERY_KEY, G_1_ALONE), measured(tables.DONE_CELLS, EVERY_KEY)),
        (with_recorded_percentages(slow, events, seen), measured(tables.SLOW_SUBSCRIBERS, EVERY_KEY)),
        (connections(events, seen, ["client_id"]), measured(tables.CONNECTIONS, ["client_id", "replication"])),
    ):
        made = {field.name: field.dataType for field in found.schema}
        assert made == {field.name: field.dataType for field in table}


@pytest.mark.slow
@pytest.mark.spark
def test_every_measure_scans_the_log_once_and_joins_and_sorts_in_groups(spark: Any, tmp_path: Path) -> None:
    frame(spark, [row()]).write.parquet(str(tmp_path / "log"))
    messages = spark.read.schema(tables.MESSAGES).parquet(str(tmp_path / "log"))
    seen, keys, holding = Observation(S, 2 * S), ("client_id", "queue"), Holding(frozenset({1}))
    places = of_rows(spark, [(1, "a", 0, 7, 1)], measured(tables.PLACES, (*keys, "replication")))
    wanted = of_rows(spark, [(1, 1)], tables.WANTED_RANKS)
    moved = moves(messages, seen, keys, S, holding)
    series = windows(moved, keys, S)
    for name, found in (
        ("cells", cells(messages, seen, keys, exact=True)),
        ("ranks", waits_at_ranks(messages, places, wanted, seen, keys, [(1, 2)])),
        ("moves", moved),
        ("done", done_cells(messages, seen, keys, G_1_ALONE)),
        ("windows", series),
        ("depth", depth(series, keys)),
        ("blocks", blocks(series, ["queue"], blocks_of(seen, S))),
        ("littles_law", littles_law(moved, seen, keys)),
        ("slow_subscribers", slow_subscribers(moved, seen, ["client_id"])),
    ):
        plan = found._jdf.queryExecution().executedPlan().toString()
        assert plan.count("FileScan") == 1, (name, plan)
        for never in ("CartesianProduct", "BroadcastNestedLoopJoin", "SortMergeJoin", "SinglePartition"):
            assert never not in plan, (name, plan)
        if name != "cells":  # which needs nearly all of them
            read = re.search(r"FileScan parquet \[(.*?)\]", plan)
            assert read is not None, (name, plan)
            assert "client_id" in read[1]
            assert "topic_id" not in read[1], (name, plan)


def test_buckets_are_those_of_the_simulator_and_coarse_ones_never_fall(session: Any) -> None:
    draw = random.Random(3)
    edges = [2**bits + offset for bits in range(1, 62) for offset in (-1, 0, 1)]
    starts = [observation.coarse_start_ns(bucket) for bucket in range(1, 3000)]
    edges += [max(0, start + offset) for start in starts for offset in (-1, 0, 1) if start < 2**62]
    durations = sorted({0, 1, 2, *edges, *(draw.getrandbits(draw.randint(1, 62)) for _ in range(5000))})
    waits = session.createDataFrame(pa.table({"wait_ns": pa.array(durations, pa.int64())}))
    found = waits.selectExpr(
        "wait_ns", f"{observation.FINE_BUCKET} as fine", f"{observation.COARSE_BUCKET} as coarse"
    ).toArrow().sort_by("wait_ns").to_pydict()  # fmt: skip
    assert found["fine"] == [bucket_of(duration) for duration in durations]
    assert found["coarse"] == sorted(found["coarse"])
    for duration, bucket in zip(durations, found["coarse"], strict=True):
        assert observation.coarse_start_ns(bucket) <= duration < observation.coarse_start_ns(bucket + 1)


def test_cells_have_the_fate_of_a_message_on_both_sides_of_the_warm_up(session: Any) -> None:
    rows = [
        row(enqueued_ns=0, wait_ns=S - 1),
        row(enqueued_ns=0, wait_ns=S, attempts=3),
        row(enqueued_ns=S, wait_ns=0, size_bytes=7),
        row(enqueued_ns=S, wait_ns=5, outcome="discarded"),
        row(enqueued_ns=0, wait_ns=None, outcome="held"),
        row(enqueued_ns=0, wait_ns=1, outcome="held"),
        row(enqueued_ns=0, wait_ns=S, outcome="held"),
        row(enqueued_ns=S, wait_ns=None, outcome="waiting"),
    ]
    found = cells(frame(session, rows), Observation(S, 9 * S), ["queue"], exact=False)
    assert picked(found, "fate", "arrived", "bucket", "messages", "again", "bytes") == {
        ("uncounted", False, -1, 1, 0, 100), ("delivered", False, bucket_of(S), 1, 2, 100),
        ("delivered", True, 0, 1, 0, 7), ("discarded", True, -1, 1, 0, 100), ("queued", False, -1, 1, 0, 100),
        ("long_unacknowledged", False, -1, 1, 0, 100), ("unacknowledged", False, -1, 1, 0, 100),
        ("waiting", True, -1, 1, 0, 100),
    }  # fmt: skip


def test_the_wait_at_a_rank_is_found_among_the_messages_of_its_cell(session: Any) -> None:
    rows = [
        row(queue=queue, replication=number % 2, wait_ns=1000 + number // 2) for number in range(20) for queue in "ab"
    ]
    bucket = int(12 * 1000**0.125)
    places = [("a", 0, bucket, 1), ("a", 1, bucket, 1), ("b", 1, bucket, 2)]
    found = waits_at_ranks(
        frame(session, rows),
        of_rows(session, places, measured(tables.PLACES, ("queue", "replication"))),
        of_rows(session, [(1, 1), (1, 10), (1, 20), (2, 10)], tables.WANTED_RANKS),
        Observation(0, S), ["queue"], [(bucket, bucket)],
    )  # fmt: skip
    assert picked(found, "cell", "rank", "value_ns") == {(1, 1, 1000), (1, 10, 1004), (1, 20, 1009), (2, 10, 1009)}


def test_a_window_counts_what_enters_it_and_what_leaves_it(session: Any) -> None:
    rows = [
        row(enqueued_ns=0, wait_ns=S, work_units=2),
        row(enqueued_ns=S - 1, wait_ns=None, outcome="held", work_units=3),
        row(enqueued_ns=S, wait_ns=3 * S, outcome="discarded"),
    ]
    moved = windows(moves(frame(session, rows), Observation(0, 9 * S), ["queue"], S, Holding()), ["queue"], S)
    names = "window_start_ns", "arrived_messages", "left_messages", "delivered_messages", "discarded_messages"
    assert picked(moved, *names) == {(0, 2, 0, 0, 0), (S, 1, 1, 1, 0), (4 * S, 0, 1, 0, 1)}
    assert picked(depth(moved, ["queue"]), "at_ns", "depth_messages", "depth_work_units") == {
        (S, 2, 5),
        (2 * S, 2, 4),
        (5 * S, 1, 3),
    }


G_1 = [
    row(queue="G-1", wait_ns=S // 4, acknowledge_ns=2 * S, work_units=5),
    row(queue="G-1", wait_ns=S // 4, outcome="held", work_units=7),
    row(queue="G-1", wait_ns=None, outcome="waiting", work_units=1),
    row(queue="G-1", enter_ns=S, wait_ns=5 * S // 4, acknowledge_ns=4 * S, work_units=20),
    row(queue="G-1", wait_ns=0, outcome="spool_refused", work_units=9),
    row(queue="D-1", wait_ns=S // 4, acknowledge_ns=2 * S, work_units=3),
    row(queue="G-1", client_id=1, wait_ns=S // 4, acknowledge_ns=2 * S, work_units=11),
]
"""Of client 0, whose G-1 holds messages until they are acknowledged, and client 1, whose does not."""


def test_g_1_holds_what_was_sent_until_it_is_acknowledged_and_not_what_waits_at_its_endpoint(session: Any) -> None:
    keys = ("client_id", "queue")
    moved = windows(moves(frame(session, G_1), Observation(0, 9 * S), keys, S, Holding(frozenset({0}))), keys, S)
    found = depth(moved, keys)
    assert picked(found, "client_id", "queue", "at_ns", "depth_messages", "depth_work_units") == {
        (0, "G-1", S, 2, 12), (0, "G-1", 2 * S, 3, 32), (0, "G-1", 3 * S, 2, 27), (0, "G-1", 5 * S, 1, 7),
        (0, "D-1", S, 0, 0), (1, "G-1", S, 0, 0),
    }  # fmt: skip
    assert picked(moved, "client_id", "queue", "window_start_ns", "delivered_messages") >= {(0, "G-1", 2 * S, 1)}


def law_of(messages: Any, seen: Observation, keys: Sequence[str], holding: Holding = Holding()) -> Any:  # noqa: B008
    return littles_law(moves(messages, seen, keys, S, holding), seen, keys)


def slow_of(messages: Any, seen: Observation) -> Any:
    """Of each client, from movements by queue too, as a summary by client and queue has them."""
    return slow_subscribers(moves(messages, seen, ["client_id", "queue"], S, Holding()), seen, ["client_id"])


def event(at_ns: int, client_id: int, name: str, value: int | None = None, replication: int = 0) -> tuple[Any, ...]:
    return "r", at_ns, client_id, None, name, value, replication


EVENTS = [
    event(S, 0, "slow-subscriber", 60), event(3 * S, 0, "slow-subscriber", 51), event(4 * S, 0, "slow-subscriber", 1),
    event(9 * S, 0, "slow-percent", 900), event(9 * S, 0, "blocked-time", 7), event(9 * S, 0, "retransmissions", 11),
    event(9 * S, 0, "time-outs", 2), event(9 * S, 0, "blocked-time", 5, replication=1),
    event(5 * S, 1, "disconnected", 40), event(6 * S, 1, "connected"), event(7 * S, 1, "disconnected-slow", 3),
    event(9 * S, 2, "expired-to-dmq", 3), event(9 * S, 2, "redelivered-to-dmq", 4),
    event(9 * S, 2, "rejected-to-dmq", 5), event(9 * S, 3, "slow-percent", 100),
    event(9 * S, -1, "missed-keepalives", 9),
]  # fmt: skip


def test_connections_are_what_happened_at_each_client_since_the_warm_up(session: Any) -> None:
    events = of_rows(session, EVENTS, tables.EVENTS)
    columns = [field.name for field in measured(tables.CONNECTIONS, ["client_id", "replication"])]
    assert picked(connections(events, Observation(2 * S, 9 * S), ["client_id"]), *columns) == {
        (0, 0, 7, 2, 3 * S, 0, 11, 2, 0, 0, 0), (0, 1, 5, 0, None, 0, 0, 0, 0, 0, 0),
        (1, 0, 0, 0, None, 2, 0, 0, 0, 0, 0), (2, 0, 0, 0, None, 0, 0, 0, 3, 4, 5),
    }  # fmt: skip
    assert picked(connections(events, Observation(0, 9 * S), []), "replication", *columns[2:]) == {
        (0, 7, 3, S, 2, 11, 2, 3, 4, 5), (1, 5, 0, None, 0, 0, 0, 0, 0, 0),
    }  # fmt: skip


def test_little_s_law_counts_the_time_in_the_queue(session: Any) -> None:
    law = law_of(frame(session, G_1), Observation(0, 10 * S), ["client_id", "queue"], Holding(frozenset({0})))
    found = {(each["client_id"], each["queue"]): each for each in law.toArrow().to_pylist()}
    assert found[0, "G-1"]["mean_depth_messages"] == pytest.approx((2 + 10 + 3) / 10)
    assert found[0, "G-1"]["arrivals_per_second"] == pytest.approx(4 / 10)
    assert found[0, "G-1"]["mean_wait_ns"] == pytest.approx((2 + 3) * S / 3)
    assert found[1, "G-1"]["mean_depth_messages"] == pytest.approx(0.025)


def test_little_s_law_is_exact_where_the_run_starts_and_ends_empty(session: Any) -> None:
    rows = [row(enqueued_ns=number * S, wait_ns=number * 1000) for number in range(50)]
    (law,) = law_of(frame(session, rows), Observation(0, 100 * S), ["queue"]).toArrow().to_pylist()
    assert law["mean_depth_messages"] == pytest.approx(sum(range(50)) * 1000 / (100 * S), rel=1e-12)
    assert law["relative_difference"] < 1e-12


def test_little_s_law_shows_what_is_queued_at_the_edges(session: Any) -> None:
    rows = [row(wait_ns=10 * S), row(enqueued_ns=5 * S, wait_ns=None, outcome="held")]
    (law,) = law_of(frame(session, rows), Observation(0, 20 * S), ["queue"]).toArrow().to_pylist()
    assert law["mean_depth_messages"] == pytest.approx((10 + 15) / 20)
    assert law["expected_depth_messages"] == pytest.approx(2 / 20 * 10)


FATES = [
    row(queue="G-1", enqueued_ns=0, wait_ns=S, acknowledge_ns=3 * S),
    row(queue="G-1", enqueued_ns=S, wait_ns=0, acknowledge_ns=S),
    row(queue="G-1", enqueued_ns=4 * S, wait_ns=0),
    row(queue="G-1", enqueued_ns=5 * S, wait_ns=S, outcome="held"),
    row(queue="G-1", enqueued_ns=6 * S, wait_ns=None, outcome="waiting"),
    row(queue="G-1", enqueued_ns=6 * S, wait_ns=S, outcome="spool_refused"),
    row(queue="D-1", enqueued_ns=0, wait_ns=0, acknowledge_ns=S),
]


def done_of(session: Any, warm_up_ns: int, acknowledged: AcknowledgedRows = G_1_ALONE) -> list[dict[str, Any]]:
    seen = Observation(warm_up_ns, 10 * S)
    found = done_cells(frame(session, FATES), seen, ["queue"], acknowledged).toArrow()
    return times_to_done(with_exact_sums(found), ["queue"]).to_pylist()


def test_what_is_not_acknowledged_is_unfinished_and_what_is_lost_is_neither(session: Any) -> None:
    (found,) = done_of(session, 0)
    assert (found["queue"], found["done_messages"], found["unfinished_messages"]) == ("G-1", 2, 3)
    assert found["max_ns"] == 6 * S
    # One of five is done at 1 s, one of the four that are left at 3 s; the three others are at least 4, 5, 6 s old.
    assert found["mean_ns"] == pytest.approx((1 + 2 * 0.8 + 3 * 0.6) * S, rel=0.01)
    assert found["p50_ns"] == found["p99_ns"] == 6 * S
    (found,) = done_of(session, 2 * S)  # those held and waiting are still there, the last sending counts
    assert (found["done_messages"], found["unfinished_messages"]) == (0, 3)
    (found,) = done_of(session, 0, AcknowledgedRows("queue = 'G-1'", comes_back=(True,)))
    assert (found["done_messages"], found["unfinished_messages"]) == (2, 2)


def test_the_counters_determine_which_messages_are_acknowledged() -> None:
    marks = pa.table(
        {"queue": ["G-1", "G-1", "D-1", "Q"], "client_id": [0, 1, 0, 2], "done_messages": [None, 0, None, 4]}
    ).append_column("run_number", pa.array([0] * 4, pa.int32()))
    found = acknowledged_in(marks, comes_back=[False])
    assert found.where == "queue = 'G-1' and client_id in (1) or queue = 'Q'"
    assert not acknowledged_in(marks.slice(2, 1), comes_back=[False]).anywhere


def test_little_s_law_of_the_time_to_done_counts_from_arrival_to_acknowledgment(session: Any) -> None:
    seen = Observation(0, 10 * S)
    moved = moves(frame(session, FATES), seen, ["queue"], S, Holding(), G_1_ALONE)
    found = {each["queue"]: each for each in littles_law(moved, seen, ["queue"]).toArrow().to_pylist()}
    assert found["D-1"]["mean_unfinished_messages"] is None
    law = found["G-1"]
    assert law["mean_unfinished_messages"] == pytest.approx((3 + 1 + 6 + 5 + 4) / 10)
    assert law["mean_done_ns"] == 2 * S
    assert law["expected_unfinished_messages"] == pytest.approx(5 / 10 * 2)


def test_a_sum_beyond_64_bits_is_refused(session: Any) -> None:
    rows = [row(wait_ns=2**62) for _ in range(3)]
    with pytest.raises(Damaged, match="wait_sum_ns add up to more than 64 bits"):
        with_exact_sums(cells(frame(session, rows), Observation(0, S), ["queue"], exact=True).toArrow())


def test_a_client_is_slow_in_the_seconds_in_which_a_message_waits_through_half_of_it(session: Any) -> None:
    rows = [
        row(client_id=1, enqueued_ns=10 * S, wait_ns=3 * S),
        row(client_id=1, enqueued_ns=11 * S, wait_ns=3 * S),
        row(client_id=2, enqueued_ns=10 * S + 1, wait_ns=S // 2),
        row(client_id=3, enqueued_ns=95 * S, wait_ns=None, outcome="held"),
        row(client_id=4, enqueued_ns=0, wait_ns=100 * S),
        row(client_id=5, enqueued_ns=0, wait_ns=None, outcome="waiting"),
    ]
    slow = slow_of(frame(session, rows), Observation(0, 100 * S))
    found = {each["client_id"]: each for each in slow.toArrow().to_pylist()}
    assert {name: each["blocked_seconds"] for name, each in found.items()} == {1: 4, 2: 0, 3: 5, 4: 100, 5: 0}
    assert found[1]["slow_percent"] == 0.0
    assert found[1]["slow_percent_max"] == pytest.approx(100 * 4 / 60)
    assert found[3]["slow_percent"] == pytest.approx(100 * 5 / 60)
    assert found[4]["slow_percent"] == found[4]["slow_percent_max"] == 100.0
    assert found[5]["slow_percent_max"] == 0.0


def plainly(rows: Sequence[dict[str, Any]], seen: Observation) -> dict[int, tuple[int, float, float]]:
    """Blocked seconds, the last minute's percentage and the largest of any minute, by client: second by second."""
    first, last = -(-seen.warm_up_ns // S), seen.horizon_ns // S
    last = max(first, last)
    minute = max(1, min(60, last - first))
    blocked: dict[int, set[int]] = {each["client_id"]: set() for each in rows}
    for each in rows:
        end = seen.horizon_ns if each["wait_ns"] is None else each["enqueued_ns"] + each["wait_ns"]
        for half in range(2 * last):
            inside = each["enqueued_ns"] <= half * S // 2 and (half + 1) * S // 2 <= end
            if inside and first <= half // 2 < last:
                blocked[each["client_id"]].add(half // 2)
    found = {}
    for client, seconds in blocked.items():
        shares = [len(seconds & set(range(at - minute + 1, at + 1))) for at in seconds]
        late = len(seconds & set(range(last - minute, last)))
        found[client] = (len(seconds), 100 * late / minute, 100 * max(shares, default=0) / minute)
    return found


@pytest.mark.parametrize(("seed", "warm_up_s", "horizon_s"), [(1, 0, 80), (2, 7, 100), (3, 20, 81)])
def test_slow_subscribers_follow_the_rule_second_by_second(
    session: Any, seed: int, warm_up_s: int, horizon_s: int
) -> None:
    draw = random.Random(seed)
    rows = []
    for client in range(60):
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(160) * S // 2 if draw.random() < 0.5 else draw.randrange(80 * S)
            stay = draw.randrange(12) * S // 2 if draw.random() < 0.5 else draw.randrange(30 * S)
            held = draw.random() < 0.1
            rows.append(
                row(
                    client_id=client, enqueued_ns=at, wait_ns=None if held else stay, outcome="held" if held else "dead"
                )
            )
    seen = Observation(warm_up_s * S, horizon_s * S)
    found = slow_of(frame(session, rows), seen).toArrow().to_pylist()
    expected = plainly(rows, seen)
    assert {each["client_id"] for each in found} == expected.keys()
    for each in found:
        figures = (each["blocked_seconds"], each["slow_percent"], each["slow_percent_max"])
        assert figures == pytest.approx(expected[each["client_id"]]), each
