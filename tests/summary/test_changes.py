"""The stretch of a run in which a queue differs most: found where it was put in, and not where nothing differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from qsctl.summary.finishing.changes import LEAST_EXPLAINED, changes, most_different
from qsctl.summary.job import summarize_runs
from qsctl.summary.measures.blocks import BEFORE, MOST_BLOCKS, BlocksOfRun, blocks_of
from qsctl.summary.measures.observation import Observation
from tests.summary.nights import record_night

S = 1_000_000_000


def correlated(draw: np.random.Generator, rows: int, count: int, correlation: float) -> np.ndarray:
    noise = draw.standard_normal((rows, count))
    series = noise.copy()
    for at in range(1, count):
        series[:, at] = correlation * series[:, at - 1] + (1 - correlation**2) ** 0.5 * noise[:, at]
    return series


@pytest.mark.parametrize(("count", "correlation", "most"), [(64, 0.0, 0.001), (64, 0.5, 0.004), (32, 0.0, 0.004)])
def test_alike_blocks_have_no_stretch(count: int, correlation: float, most: float) -> None:
    _, _, explained = most_different(correlated(np.random.default_rng(1), 2000, count, correlation))
    assert (explained >= LEAST_EXPLAINED).mean() <= most


@pytest.mark.parametrize(("begin", "end"), [(30, 46), (40, 64), (0, 10), (5, 9)])
def test_a_stretch_is_found_where_it_was_put_in(begin: int, end: int) -> None:
    values = np.random.default_rng(2).standard_normal((200, 64))
    values[:, begin:end] += 8
    begins, ends, explained = most_different(values)
    # A shift is the same split from both of its sides.
    same = (begins == begin) & (ends == end) | (begins == end) & (ends == 64) & (begin == 0)
    same |= (begins == 0) & (ends == begin) & (end == 64)
    assert same.mean() > 0.95
    assert (explained >= LEAST_EXPLAINED).mean() > 0.95


def test_of_every_stretch_the_one_that_explains_most_is_taken() -> None:
    values = np.random.default_rng(3).exponential(1, (20, 9))
    begins, ends, explained = most_different(values)
    for row, begin, end, part in zip(values, begins, ends, explained, strict=True):
        parts = {}
        for first in range(9):
            for behind in range(first + 1, 10):
                if behind - first < 9:
                    inside = np.zeros(9, bool)
                    inside[first:behind] = True
                    fit = np.where(inside, row[inside].mean(), row[~inside].mean())
                    parts[first, behind] = 1 - ((row - fit) ** 2).sum() / ((row - row.mean()) ** 2).sum()
        assert part == pytest.approx(max(parts.values()))
        assert parts[begin, end] == pytest.approx(part)


def test_constant_series_have_no_stretch() -> None:
    assert list(most_different(np.full((3, 40), 0.1))[2]) == [0.0] * 3


@pytest.mark.parametrize(
    ("warm_up_s", "horizon_s", "expected"),
    [
        (0, 10, BlocksOfRun(0, S, 10)), (0, 64, BlocksOfRun(0, S, 64)), (0, 65, BlocksOfRun(0, 2 * S, 32)),
        (100, 500, BlocksOfRun(100 * S, 7 * S, 57)), (9, 3, BlocksOfRun(9 * S, S, 0)),
    ],
)  # fmt: skip
def test_blocks_are_whole_windows_behind_the_warm_up(warm_up_s: int, horizon_s: int, expected: BlocksOfRun) -> None:
    (found,) = blocks_of(Observation(warm_up_s * S, horizon_s * S), S)
    assert found == expected
    assert found.count <= MOST_BLOCKS


def test_a_table_of_blocks_becomes_stretches_with_rates_and_lengths() -> None:
    """Two runs of different length; what entered in the warm-up is still in the queue."""
    rows = []
    for run, count in ((0, 40), (1, 20)):
        rows.append((run, "Q", 0, BEFORE, 0, 0, 0, 7))
        for block in range(count):
            many = 10 <= block < 14
            rows.append((run, "Q", 0, block, 50 if many else 2, 2, 1 if many else 0, 3 if block == 10 else 0))
    names = ("run_number", "queue", "replication", "block", "arrived_messages", "delivered_messages",
             "lost_messages", "growth_messages")  # fmt: skip
    blocks = pa.table(dict(zip(names, map(pa.array, zip(*rows, strict=True)), strict=True)))
    runs = (BlocksOfRun(100 * S, 2 * S, 40), BlocksOfRun(0, 2 * S, 20))
    found = {row["measure"]: row for row in changes(blocks, ["run_number", "queue"], runs).to_pylist()}
    assert {row["run_number"] for row in found.values()} == {0}  # of the other too few blocks
    assert found.keys() == {"arrived_per_second", "lost_per_second", "depth_messages"}
    arrived = found["arrived_per_second"]
    assert (arrived["from_ns"], arrived["until_ns"]) == (120 * S, 128 * S)
    assert (arrived["inside"], arrived["outside"]) == (25.0, 1.0)
    assert found["lost_per_second"]["inside"] == 0.5
    # A shift: from the first of the two sides.
    depth = found["depth_messages"]
    assert {depth["inside"], depth["outside"]} == {7.0, 10.0}
    assert 120 * S in {depth["from_ns"], depth["until_ns"]}
    assert depth["explained_share"] == pytest.approx(1.0)


def test_clients_of_a_queue_are_looked_at_together(tmp_path: Path) -> None:
    run = record_night(tmp_path / "night", 1)
    asked: dict[str, Any] = {"measures": {"changes"}, "window_ns": S // 100}
    of_clients = summarize_runs([run], by=["client", "queue"], **asked).tables["changes"]
    assert of_clients == summarize_runs([run], by=["queue"], **asked).tables["changes"]
    assert {row["queue"] for row in of_clients} >= {"D-1"}
    assert all(row["client"] is None and row["from_time"] is not None for row in of_clients)
