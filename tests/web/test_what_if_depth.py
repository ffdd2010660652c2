"""Depth over time, message by message, against a plain count of the same rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from qsctl.sim.kernel.records import LOG_ROW
from qsctl.sim.model import NEVER, OUTCOMES
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.web._what_if_depth import INSTANTS, DepthCounter

BUCKETS = 20
NAMES = ["G-1", "D-1", "D-2"]
ROWS = 2000


@pytest.mark.parametrize(("name", "holding"), [("burst", {"G-1"}), ("work-queue", set(NAMES))])
def test_depth_is_that_of_a_plain_count(name: str, holding: set[str]) -> None:
    """A queue that holds messages holds one until it is acknowledged, the others until it is sent."""
    scenario = read_scenario(find_scenario(name))
    horizon, drawn = scenario.horizon_ns, np.random.default_rng(1)
    rows = np.zeros(ROWS, LOG_ROW)
    rows["enqueued_ns"] = drawn.integers(0, horizon, ROWS)
    for field in ("enter_ns", "wait_ns", "acknowledge_ns"):
        rows[field] = np.where(drawn.random(ROWS) < 0.2, NEVER, drawn.integers(0, horizon // 3, ROWS))
    rows["queue"], rows["client_id"] = drawn.integers(0, 2, ROWS), drawn.integers(0, 60, ROWS)
    rows["outcome"] = drawn.integers(0, len(OUTCOMES), ROWS)
    counter = DepthCounter(scenario, NAMES, BUCKETS)
    for part in np.array_split(rows, 3):
        counter.add(part)
    found = counter.result()
    assert set(found) == {"G-1", "D-1"}  # D-2 had no message
    for number, queue in enumerate(NAMES[:2]):
        depths = _plain(rows[rows["queue"] == number], horizon, holds=queue in holding)
        assert list(found[queue].low) == [min(each) for each in depths]
        assert list(found[queue].high) == [max(each) for each in depths]
        assert list(found[queue].mean) == pytest.approx([sum(each) / INSTANTS for each in depths], abs=1e-3)


def _plain(rows: np.ndarray, horizon: int, *, holds: bool) -> list[list[int]]:
    count = BUCKETS * INSTANTS
    depth = [0] * (count + 1)
    for row in rows:
        if row["enter_ns"] == NEVER:
            continue
        stayed = int(row["wait_ns"])
        outcome = str(OUTCOMES[row["outcome"]])
        if holds and outcome == "held":
            stayed = NEVER
        elif holds and outcome == "delivered" and row["acknowledge_ns"] != NEVER:
            stayed = int(row["acknowledge_ns"])
        arrived, step = int(row["enqueued_ns"]), horizon / count
        entered = min(count, math.ceil((arrived + int(row["enter_ns"])) / step))
        left = count + 1 if stayed == NEVER else min(count, math.ceil((arrived + stayed) / step))
        for at in range(entered, left):
            depth[at] += 1
        for at in range(left, entered):  # rows that are drawn may leave before they enter
            depth[at] -= 1
    return [depth[at : at + INSTANTS] for at in range(0, count, INSTANTS)]
