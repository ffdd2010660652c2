"""Small tables grouped on the driver and in tasks: sums are right or refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.errors import Damaged
from qsctl.summary.groups import LARGEST_SUM, grouped


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
