"""Small tables on the driver: sums are right or refused, ranks and intervals are those of the textbook."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.errors import Damaged
from qsctl.eventlog.outcomes import LOSS_COLUMNS
from qsctl.eventlog.schema import bucket_bounds_ns
from qsctl.summary.finishing._percentiles import bucket_end_ns, ranks
from qsctl.summary.finishing.arrow import LARGEST_SUM, grouped, with_exact_sums
from qsctl.summary.finishing.counters import counted, loss_ratios
from qsctl.summary.finishing.intervals import intervals
from qsctl.summary.measures.observation import SUM_LOW_BITS


def table(rows: list[tuple[int, int]]) -> pa.Table:
    return pa.table({"key": pa.array([key for key, _ in rows], pa.int32()), "n": pa.array([n for _, n in rows])})


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2**61)), min_size=1, max_size=12))
def test_a_sum_is_exact_or_refused_and_never_wraps(rows: list[tuple[int, int]]) -> None:
    sums: dict[int, int] = {}
    for key, number in rows:
        sums[key] = sums.get(key, 0) + number
    if max(sums.values()) > LARGEST_SUM:
        with pytest.raises(Damaged, match="64 bits"):
            grouped(table(rows), ["key"], n="sum")
    elif max(sums.values()) < 0.999 * LARGEST_SUM:
        made = grouped(table(rows), ["key"], n="sum").to_pydict()
        assert dict(zip(made["key"], made["n"], strict=True)) == sums


def test_nulls_are_passed_over_and_nothing_but_nulls_is_null() -> None:
    rows = pa.table({"key": [1, 1, 2], "n": pa.array([3, None, None], pa.int64())})
    made = grouped(rows, ["key"], n="sum").sort_by("key").to_pydict()
    assert made == {"key": [1, 2], "n": [3, None]}


def test_the_end_of_a_bucket_is_that_of_the_simulator() -> None:
    buckets = [*range(0, 1000, 7), 255, 256, 257, 5000, 7000]
    ends = bucket_end_ns(np.array(buckets, np.int64)).tolist()
    assert ends == [bucket_bounds_ns(bucket)[1] for bucket in buckets]


def test_a_rank_is_counted_from_the_start_of_its_bucket() -> None:
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


def cell(topic: int, replication: int, messages: int) -> dict[str, object]:
    return {
        "queue": "D-1", "topic_id": topic, "replication": replication, "fate": "delivered", "arrived": True,
        "bucket": 3, "messages": messages, "again": 0, "indications": 0, "bytes": 1, "work_units": 1, "wait_sum_ns": 5,
        "wait_max_ns": 5, "first_left_ns": 5,
    }  # fmt: skip


def test_a_replication_without_a_message_counts_as_zero_and_a_lost_one_not_at_all() -> None:
    cells = pa.Table.from_pylist([cell(1, 0, 4), cell(1, 2, 6), cell(2, 0, 9)])
    mark = {"queue": "D-1", "high_water_mark_work_units": 7, "max_depth_work_units": 9, "observed_ns": 10}
    marks = pa.Table.from_pylist([{**mark, "evicted_messages": 0, "replication": number} for number in (0, 2)])
    cells = cells.set_column(2, "replication", cells["replication"].cast(pa.int32()))
    cells = cells.set_column(5, "bucket", cells["bucket"].cast(pa.int32()))
    marks = marks.set_column(5, "replication", marks["replication"].cast(pa.int32()))
    replications = pa.table(
        {"run_number": [0, 0], "replication": pa.array([0, 2], pa.int32()), "observed_ns": [10, 10]}
    )
    rows = counted(cells, marks, ["queue", "topic_id"], replications).to_pylist()
    assert {(row["topic_id"], row["replication"]): row["delivered_messages"] for row in rows} == {
        (1, 0): 4, (1, 2): 6, (2, 0): 9, (2, 2): 0,
    }  # fmt: skip


def parts_of(values: list[int]) -> pa.Table:
    """The two sums that Spark makes of values."""
    high, low = sum(value >> SUM_LOW_BITS for value in values), sum(value % (1 << SUM_LOW_BITS) for value in values)
    return pa.table({"queue": ["D-1", "D-2"], "wait_sum_ns_high": [high, None], "wait_sum_ns_low": [low, None]})


@pytest.mark.parametrize("values", [[0], [5, 7], [2**31 - 1] * 3, [2**62, 2**62 - 1], [2**62] + [2**31 - 1] * 1000])
def test_a_sum_in_two_parts_is_the_sum(values: list[int]) -> None:
    assert with_exact_sums(parts_of(values)).to_pydict() == {
        "queue": ["D-1", "D-2"],
        "wait_sum_ns": [sum(values), None],
    }


@pytest.mark.parametrize("values", [[2**62, 2**62], [2**63 - 1, 1], [2**62] * 1000])
def test_a_sum_in_two_parts_that_does_not_fit_is_refused(values: list[int]) -> None:
    with pytest.raises(Damaged, match="wait_sum_ns add up to more than 64 bits hold"):
        with_exact_sums(parts_of(values))


def test_intervals_over_replications_are_student_s() -> None:
    measured = pa.table(
        {
            "queue": ["D-1", "D-1", "D-1", "G-1"],
            "measure": ["loss_ratio"] * 4,
            "replication": [0, 1, 2, 0],
            "value": [1.0, 2.0, 4.0, 5.0],
            "relative_error": [0.0, 0.0078125, 0.0, 0.0],
        }
    )
    found = {each["queue"]: each for each in intervals(measured, ["queue"]).to_pylist()}
    deviation = (((1 - 7 / 3) ** 2 + (2 - 7 / 3) ** 2 + (4 - 7 / 3) ** 2) / 2) ** 0.5
    assert found["D-1"]["mean"] == pytest.approx(7 / 3)
    assert found["D-1"]["half_width"] == pytest.approx(4.302652729911275 * deviation / 3**0.5, rel=1e-9)
    assert found["D-1"]["confidence"] == 0.95
    assert (found["D-1"]["replications"], found["D-1"]["method"]) == (3, "Student's t")
    # What a percentile may be off comes along with its mean.
    assert (found["D-1"]["relative_error"], found["G-1"]["relative_error"]) == (0.0078125, 0.0)
    assert found["G-1"]["half_width"] is None
    assert found["G-1"]["standard_deviation"] is None


def test_a_loss_ratio_leaves_elided_messages_out_of_the_losses() -> None:
    counts = {name: [1, 0] for name in LOSS_COLUMNS} | {"elided_messages": [3, 0], "delivered_messages": [5, 0]}
    counters = pa.table({name: pa.array(values, pa.int64()) for name, values in counts.items()})
    assert len(LOSS_COLUMNS) == 9
    assert loss_ratios(counters).to_pylist() == [pytest.approx(9 / 17), 0.0]
