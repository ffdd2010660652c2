"""The measures frame by frame: literal rows in, literal rows out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from qsctl.eventlog.outcomes import LOSS_COLUMNS
from qsctl.eventlog.schema import MESSAGES, bucket_bounds_ns, bucket_of
from qsctl.instant import SECOND_NS
from qsctl.summary import observation, tables
from qsctl.summary.observation import Observation

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

S = SECOND_NS


def frame(spark: Any, rows: Sequence[dict[str, Any]]) -> Any:
    """Message rows, with the client's name."""
    named = [(*(row.get(field.name) for field in tables.MESSAGES), f"client-{row['client_id']}") for row in rows]
    schema = StructType([*tables.MESSAGES.fields, StructField("client", StringType())])
    return spark.createDataFrame(named, schema)


def row(**values: Any) -> dict[str, Any]:
    return {
        "run_id": "r", "replication": 0, "client_id": 0, "queue": "D-1", "topic_id": 0, "size_bytes": 100,
        "work_units": 1, "enqueued_ns": 0, "wait_ns": 0, "outcome": "delivered", "discard_indication": False,
        "attempts": 1, **values,
    }  # fmt: skip


def columns(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """The same rows as a task of Spark meets them."""
    from qsctl.summary.log_pass import with_place

    plain = [{name: value for name, value in row.items() if name != "replication"} for row in rows]
    (replication,) = {row["replication"] for row in rows}
    return with_place(pa.Table.from_pylist(plain, schema=MESSAGES), "r", replication)


def picked(table: pa.Table, *names: str) -> set[tuple[Any, ...]]:
    return {tuple(each[name] for name in names) for each in table.to_pylist()}


def test_buckets_are_those_of_the_simulator() -> None:
    draw = random.Random(3)
    edges = [2**bits + offset for bits in range(1, 62) for offset in (-1, 0, 1)]
    durations = [0, 1, 2, *edges, *(draw.getrandbits(draw.randint(1, 62)) for _ in range(5000))]
    found = observation.fine_bucket(np.array(durations, np.int64)).tolist()
    assert found == [bucket_of(duration) for duration in durations]


def test_a_coarse_bucket_never_falls_where_the_wait_grows_and_starts_where_it_is_said_to() -> None:
    draw = random.Random(5)
    starts = [observation.coarse_start_ns(bucket) for bucket in range(1, 2000)]
    edges = [max(0, start + offset) for start in starts for offset in (-1, 0, 1) if start < 2**62]
    durations = sorted([0, 1, 2, *edges, *(draw.getrandbits(draw.randint(1, 62)) for _ in range(2000))])
    found = observation.coarse_bucket(np.array(durations, np.int64)).tolist()
    assert found == sorted(found)
    for duration, bucket in zip(durations, found, strict=True):
        assert observation.coarse_start_ns(bucket) <= duration < observation.coarse_start_ns(bucket + 1)


def test_the_end_of_a_bucket_is_that_of_the_simulator() -> None:
    from qsctl.summary.delay import bucket_end_ns

    buckets = [*range(0, 1000, 7), 255, 256, 257, 5000, 7000]
    ends = bucket_end_ns(np.array(buckets, np.int64)).tolist()
    assert ends == [bucket_bounds_ns(bucket)[1] for bucket in buckets]


def test_a_rank_is_counted_from_the_start_of_its_bucket() -> None:
    from qsctl.summary.delay import ranks

    histogram = pa.table(
        {
            "queue": ["a", "b", "a", "a"],
            "bucket": pa.array([7, 1, 2, 5], pa.int32()),
            "messages": pa.array([90, 1, 899, 11], pa.int64()),
        }
    )
    found = {
        (row["queue"], row["percentile"]): (row["bucket"], row["rank"])
        for row in ranks(histogram, ["queue"]).to_pylist()
    }
    assert found == {
        ("a", "p50_ns"): (2, 500), ("a", "p90_ns"): (5, 1), ("a", "p95_ns"): (7, 40), ("a", "p99_ns"): (7, 80),
        ("a", "p999_ns"): (7, 89), **{("b", f"p{name}_ns"): (1, 1) for name in (50, 90, 95, 99, 999)},
    }  # fmt: skip


def test_ranks_and_windows_are_found_alike_here_and_on_spark(spark: Any) -> None:
    from qsctl.summary import counters, delay
    from qsctl.summary.depth import depths, with_depth
    from qsctl.summary.throughput import Windows, windows

    draw = random.Random(11)
    outcomes = ["delivered", "delivered", "held", "discarded", "elided", "expired", "dead", "waiting"]
    rows = []
    for _ in range(3000):
        outcome = draw.choice(outcomes)
        stays = outcome == "waiting" or (outcome == "held" and draw.random() < 0.5)
        rows.append(
            row(
                queue=draw.choice(["D-1", "G-1"]), client_id=draw.randrange(3), outcome=outcome,
                enqueued_ns=draw.randrange(10**10), wait_ns=None if stays else int(draw.lognormvariate(18, 4)),
                acknowledge_ns=None if outcome != "delivered" else int(draw.lognormvariate(20, 3)),
                work_units=draw.randint(1, 5), size_bytes=draw.randint(1, 9000),
            )
        )  # fmt: skip
    seen, keys = Observation(S, 10**15), ("client_id", "queue")
    batch, messages = columns(rows), frame(spark, rows)
    tallied = counters.Tally(seen, keys, exact=True, with_law=False).of(batch)
    ranked = {keys: delay.ranks(counters.histogram(tallied, keys), keys)}
    spans, cells = delay.spans_of(ranked.values()), delay.cells_of(ranked)
    found = delay.Candidates(seen, cells, tuple(spans)).of(batch)
    assert found.num_rows <= delay.most_candidates(counters.histogram(tallied, keys), cells[keys], keys) < len(rows)
    here = delay.values_among(found, ranked[keys], cells[keys], keys)
    assert here.num_rows == 30
    alike(here, delay.exact_values(messages, ranked[keys], spans, seen, keys).toArrow(), *keys, "percentile")
    for holders in (frozenset[int](), frozenset({0, 2})):
        moved = depths(Windows(keys, S, holders).of(batch), keys)
        alike(moved, with_depth(windows(messages, keys, S, holders), keys).toArrow(), *keys, "window_start_ns")


def alike(here: pa.Table, there: pa.Table, *order: str) -> None:
    by = [(name, "ascending") for name in order]
    assert set(here.column_names) == set(there.column_names)
    assert here.sort_by(by).to_pylist() == there.select(here.column_names).sort_by(by).to_pylist()


def test_a_window_counts_what_enters_it_and_what_leaves_it() -> None:
    from qsctl.summary.depth import depths
    from qsctl.summary.throughput import Windows

    batch = columns(
        [
            row(enqueued_ns=0, wait_ns=S, work_units=2),
            row(enqueued_ns=S - 1, wait_ns=None, outcome="held", work_units=3),
            row(enqueued_ns=S, wait_ns=3 * S, outcome="discarded"),
        ],
    )
    moved = Windows(("queue",), S).of(batch)
    assert picked(
        moved, "window_start_ns", "arrived_messages", "left_messages", "delivered_messages", "discarded_messages"
    ) == {(0, 2, 0, 0, 0), (S, 1, 1, 1, 0), (4 * S, 0, 1, 0, 1)}
    assert picked(depths(moved, ["queue"]), "at_ns", "depth_messages", "depth_work_units") == {
        (S, 2, 5),
        (2 * S, 2, 4),
        (5 * S, 1, 3),
    }


def test_g_1_holds_what_was_sent_until_it_is_acknowledged() -> None:
    from qsctl.summary.depth import depths
    from qsctl.summary.throughput import Windows

    batch = columns(
        [
            row(queue="G-1", enqueued_ns=0, wait_ns=S // 4, acknowledge_ns=2 * S, work_units=5),
            row(queue="G-1", enqueued_ns=0, wait_ns=S // 4, outcome="held", work_units=7),
            row(queue="G-1", enqueued_ns=0, wait_ns=None, outcome="waiting", work_units=1),
            row(queue="G-1", enqueued_ns=0, wait_ns=0, outcome="spool_refused", work_units=9),
            row(queue="D-1", enqueued_ns=0, wait_ns=S // 4, acknowledge_ns=2 * S, work_units=3),
            row(queue="G-1", client_id=1, enqueued_ns=0, wait_ns=S // 4, acknowledge_ns=2 * S, work_units=11),
        ]
    )
    keys = ("client_id", "queue")
    moved = depths(Windows(keys, S, frozenset({0})).of(batch), keys)
    assert picked(moved, "client_id", "queue", "at_ns", "depth_messages", "depth_work_units") == {
        (0, "G-1", S, 3, 13), (0, "G-1", 3 * S, 2, 8), (0, "D-1", S, 0, 0), (1, "G-1", S, 0, 0),
    }  # fmt: skip
    assert picked(moved, "client_id", "queue", "window_start_ns", "delivered_messages") >= {(0, "G-1", 2 * S, 1)}


def test_parts_of_a_log_add_up_to_the_whole() -> None:
    from qsctl.summary.counters import Tally
    from qsctl.summary.throughput import Windows

    draw = random.Random(13)
    rows = [
        row(client_id=draw.randrange(2), queue=draw.choice(["D-1", "G-1"]), enqueued_ns=draw.randrange(4 * S),
            wait_ns=draw.randrange(3 * S), outcome=draw.choice(["delivered", "discarded", "expired"]))
        for _ in range(400)
    ]  # fmt: skip
    keys = ("client_id", "queue")
    for count, key in ((Tally(Observation(S, 4 * S), keys, exact=False, with_law=True), "state"),
                       (Windows(keys, S), "window_start_ns")):  # fmt: skip
        parts = pa.concat_tables([count.of(columns(rows[:150])), count.of(columns(rows[150:]))])
        alike(count.merged(parts), count.of(columns(rows)), *keys, key)


def test_a_client_is_slow_in_the_seconds_in_which_a_message_waits_through_half_of_it(spark: Any) -> None:
    from qsctl.summary.slow_subscriber import HalfSeconds, slow_of_halves, slow_subscribers

    rows = [
        row(client_id=1, enqueued_ns=10 * S, wait_ns=3 * S),
        row(client_id=1, enqueued_ns=11 * S, wait_ns=3 * S),
        row(client_id=2, enqueued_ns=10 * S + 1, wait_ns=S // 2),
        row(client_id=3, enqueued_ns=95 * S, wait_ns=None, outcome="held"),
        row(client_id=4, enqueued_ns=0, wait_ns=100 * S),
    ]
    seen = Observation(0, 100 * S)
    found = {each["client"]: each for each in slow_subscribers(frame(spark, rows), seen, ["client"]).collect()}
    here = slow_of_halves(HalfSeconds(seen, ("client_id",)).of(columns(rows)), seen, ("client_id",)).to_pylist()
    assert {f"client-{each.pop('client_id')}": each for each in here} == {
        name: {field: each[field] for field in each.asDict() if field != "client"} for name, each in found.items()
    }
    assert {name: each["blocked_seconds"] for name, each in found.items()} == {
        "client-1": 4, "client-2": 0, "client-3": 5, "client-4": 100,
    }  # fmt: skip
    assert found["client-1"]["slow_percent"] == 0.0
    assert found["client-1"]["slow_percent_max"] == pytest.approx(100 * 4 / 60)
    assert found["client-3"]["slow_percent"] == pytest.approx(100 * 5 / 60)
    assert found["client-4"]["slow_percent"] == found["client-4"]["slow_percent_max"] == 100.0


LIMITS = {
    "queue": pa.string(), "replication": pa.int32(), "high_water_mark_work_units": pa.int64(),
    "max_depth_work_units": pa.int64(), "observed_ns": pa.int64(), "evicted_messages": pa.int64(),
}  # fmt: skip


def law_of(rows: Sequence[dict[str, Any]], seen: Observation) -> Any:
    """Both sides of the law by queue, where no counter tells of a limit."""
    from qsctl.summary.counters import Tally, replicated
    from qsctl.summary.littles_law import littles_law

    none = pa.table({name: pa.array([], kind) for name, kind in LIMITS.items()})
    tallied = Tally(seen, ("queue",), exact=True, with_law=True).of(columns(rows))
    return littles_law(replicated(tallied, none, seen, ["queue"]), seen, ["queue"]).to_pylist()[0]


def test_little_s_law_is_exact_where_the_run_starts_and_ends_empty() -> None:
    rows = [row(enqueued_ns=number * S, wait_ns=number * 1000) for number in range(50)]
    law = law_of(rows, Observation(0, 100 * S))
    assert law["mean_depth_messages"] == pytest.approx(sum(range(50)) * 1000 / (100 * S), rel=1e-12)
    assert law["relative_difference"] < 1e-12


def test_little_s_law_shows_what_is_queued_at_the_edges() -> None:
    rows = [row(wait_ns=10 * S), row(enqueued_ns=5 * S, wait_ns=None, outcome="held")]
    law = law_of(rows, Observation(0, 20 * S))
    assert law["mean_depth_messages"] == pytest.approx((10 + 15) / 20)
    assert law["expected_depth_messages"] == pytest.approx(2 / 20 * 10)


def test_intervals_over_replications_are_student_s() -> None:
    from qsctl.summary.replications import intervals

    measured = pa.table(
        {"queue": ["D-1", "D-1", "D-1", "G-1"], "measure": ["loss_ratio"] * 4, "value": [1.0, 2.0, 4.0, 5.0]}
    )
    found = {each["queue"]: each for each in intervals(measured, ["queue"]).to_pylist()}
    deviation = (((1 - 7 / 3) ** 2 + (2 - 7 / 3) ** 2 + (4 - 7 / 3) ** 2) / 2) ** 0.5
    assert found["D-1"]["mean"] == pytest.approx(7 / 3)
    assert found["D-1"]["half_width"] == pytest.approx(4.302652729911275 * deviation / 3**0.5, rel=1e-9)
    assert found["D-1"]["confidence"] == 0.95
    assert found["G-1"]["half_width"] is None
    assert found["G-1"]["standard_deviation"] is None


def test_a_loss_ratio_leaves_elided_messages_out_of_the_losses() -> None:
    from qsctl.summary.loss import loss_ratio

    counted = {name: [1, 0] for name in LOSS_COLUMNS} | {"elided_messages": [3, 0], "delivered_messages": [5, 0]}
    counters = pa.table({name: pa.array(values, pa.int64()) for name, values in counted.items()})
    assert len(LOSS_COLUMNS) == 8
    assert loss_ratio(counters).to_pylist() == [pytest.approx(8 / 16), 0.0]
