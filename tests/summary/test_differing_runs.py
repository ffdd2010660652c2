"""Which runs differ: the stated probability of a false alarm holds, and what was put in is found."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from qsctl.errors import UsageError
from qsctl.eventlog.run_folder import read_run_info, write_run_info
from qsctl.summary import differing_runs, summary_frames
from qsctl.summary.comparison.run_differences import change_points, outlying_values
from qsctl.summary.differences import _findings

RECORDING = Path(__file__).parents[2] / "fixtures/recordings/monday"


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("count", [5, 12, 50])
def test_outliers_are_found_among_alike_runs_with_the_stated_probability(count: int) -> None:
    draw = np.random.default_rng(1)
    trials, stated = 4000, 0.05
    alarms = sum(bool(outlying_values(draw.normal(7, 3, count), stated)) for _ in range(trials))
    assert abs(alarms / trials - stated) <= 4 * (stated * (1 - stated) / trials) ** 0.5


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("values", ["normal", "ties", "long tails"])
def test_changes_are_found_in_alike_runs_with_the_stated_probability_at_most(values: str) -> None:
    draw = np.random.default_rng(2)
    trials, stated = 400, 0.1
    alarms = 0
    for _ in range(trials):
        sample = {
            "normal": lambda: draw.normal(0, 1, 24), "ties": lambda: draw.integers(0, 3, 24).astype(float),
            "long tails": lambda: draw.standard_cauchy(24),
        }[values]()  # fmt: skip
        alarms += bool(change_points(sample, stated))
    assert alarms / trials <= stated + 4 * (stated * (1 - stated) / trials) ** 0.5
    if values == "normal":
        assert alarms > 0


def test_what_was_put_in_is_found_where_it_is() -> None:
    draw = np.random.default_rng(3)
    values = draw.normal(100, 1, 40)
    values[17] = 130
    (outlier,) = outlying_values(values, 0.01)
    assert outlier.place == 17
    assert outlier.typical == pytest.approx(100, abs=1)
    steps = np.concatenate([draw.normal(level, 1, 20) for level in (10, 20, 14)])
    found = change_points(steps, 0.01)
    assert [each.place for each in found] == [20, 40]
    assert [round(each.before) for each in found] == [10, 20]
    assert [round(each.after) for each in found] == [20, 14]


def test_of_few_runs_nothing_is_stated_and_of_equal_ones_a_different_one_has_no_probability() -> None:
    assert outlying_values(np.array([0.0, 0.0, 0.0, 9.0]), 0.5) == []
    assert change_points(np.arange(9.0), 0.5) == []
    (other,) = outlying_values(np.array([0.0, 0.0, 0.0, 0.0, 0.2]), 0.01)
    assert (other.place, other.distance, other.limit) == (4, None, None)


def test_groups_are_judged_by_themselves_and_simulations_have_no_changes() -> None:
    draw = np.random.default_rng(4)
    rows = [
        {"run_group": group, "client": None, "queue": "Q", "measure": "loss_ratio", "run_id": f"{group}{number:02}",
         "value": level + draw.normal(0, 0.01) + (number >= 15), "at": None if group == "b" else number}
        for group, level in (("a", 0), ("b", 50)) for number in range(30)
    ]  # fmt: skip
    rows[3]["value"] = 40.0
    found = _findings(list(reversed(rows)), 0.01).to_pylist()
    assert {(row["kind"], row["run_id"]) for row in found} == {("change", "a15"), ("outlier", "a03")}
    assert all(row["runs"] == 30 for row in found)


@pytest.mark.slow
@pytest.mark.spark
def test_runs_of_a_summary_are_compared_in_their_groups(spark: Any, tmp_path: Path) -> None:
    runs = []
    for number in range(5):
        folder = shutil.copytree(RECORDING, tmp_path / f"monday-{number}")
        info = read_run_info(folder)
        write_run_info(folder, msgspec.structs.replace(info, run_id=f"monday-{number}"))
        runs.append(folder)
    frames = summary_frames(spark, runs, by=["queue"], measures=["queues", "delays", "losses"])
    assert differing_runs(frames, group="dayofweek(started_at)").num_rows == 0
    with pytest.raises(UsageError, match="which the frames lack"):
        differing_runs({"runs": frames["runs"]})
    with pytest.raises(UsageError, match="is out of range"):
        differing_runs(frames, false_alarm=0)
