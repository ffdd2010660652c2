"""A run that is looked at again is what its rows say, at every instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from qsctl.cli.top.recorded import RunClock, RunSource
from qsctl.errors import NotFound
from qsctl.eventlog.described import with_numbers
from qsctl.eventlog.location import location
from qsctl.shipped import shipped
from tests.commands import command_line

MONDAY = Path(str(shipped("fixtures"))) / "recordings" / "monday"


@pytest.fixture(scope="module")
def monday() -> RunSource:
    return RunSource(location(str(MONDAY)), 1.0)


def of(source: RunSource, at_ns: int) -> dict[str, Any]:
    return {str(each["name"]): each for each in source.at(at_ns).rows}


def test_the_end_agrees_with_the_counters(monday: RunSource) -> None:
    counters = ds.dataset(MONDAY / "counters").to_table().to_pylist()
    at_end = of(monday, monday.clock.horizon_ns)
    assert len(at_end) == len(counters)
    for each in counters:
        row = at_end[f"{each['client']}/{each['queue']}"]
        assert row["delivered"] == each["delivered_messages"]
        assert row["depth"] == each["length_messages"]
        assert row["redelivered"] == each["redelivered_messages"]
        assert row["lost"] == each["dead_messages"]
        assert row["unacknowledged"] == 0


def test_a_depth_is_that_of_the_rows_at_the_end_of_a_bin(monday: RunSource) -> None:
    messages = ds.dataset(MONDAY / "messages").to_table().to_pylist()
    horizon, bins = monday.clock.horizon_ns, monday._bins
    for bin_number in range(0, bins, bins // 40):
        at = -(-bin_number * horizon // bins)
        for name, row in of(monday, at).items():
            mine = [each for each in messages if each["queue"] == name.rpartition("/")[2]]
            came = [each for each in mine if each["enqueued_ns"] + each["enter_ns"] < at]
            gone = 0
            for each in came:
                held_ns = each["acknowledge_ns"] if each["outcome"] == "delivered" else each["wait_ns"]
                gone += each["outcome"] != "held" and each["enqueued_ns"] + held_ns < at
            assert row["depth"] == len(came) - gone, (name, at)


def test_nothing_was_before_the_beginning(monday: RunSource) -> None:
    assert all(row["depth"] == row["delivered"] == row["in_per_s"] == 0 for row in of(monday, 0).values())


def test_the_consumers_of_a_recorded_queue_are_those_of_its_deliveries(monday: RunSource) -> None:
    deliveries = ds.dataset(MONDAY / "deliveries").to_table().to_pylist()
    monday.steer(0, 20, is_stopped=True)
    monday.steer(0, -10, is_stopped=True)
    at = monday.clock.now()
    rows = monday.look("Shop/Orders").rows
    assert len(rows) == 3
    sent = [each for each in deliveries if each["queue"] == "P/S/Orders" and each["sent_ns"] <= at]
    assert sum(row["delivered"] for row in rows) == len(sent)
    out = [each for each in sent if each["answered_ns"] is None or each["answered_ns"] > at]
    assert sum(row["outstanding"] for row in rows) == len(out)
    monday.steer(0, 20, is_stopped=True)
    assert monday.look("Shop/Orders").note == "There are no consumers."


def test_a_clock_is_stopped_set_and_made_faster() -> None:
    clock = RunClock(1_000_000_000_000_000, 10.0, is_stopped=True)
    clock.steer(0, 5, is_stopped=True)
    assert clock.now() == clock.now() == 250_000_000_000_000
    clock.steer(1, -3, is_stopped=True)
    assert (clock.now(), clock.speed) == (100_000_000_000_000, 20.0)
    clock.steer(0, -99, is_stopped=True)
    assert clock.now() == 0
    clock.steer(0, 99, is_stopped=False)
    assert clock.now() == 1_000_000_000_000_000


@pytest.mark.slow
def test_a_simulated_broker_and_what_cannot_be_looked_at(tmp_path: Path) -> None:
    run = CliRunner().invoke(
        command_line(),
        ["simulate", "burst", "--set", "horizon=2s", "--level", "messages", "--out", str(tmp_path / "run")],
    )
    assert run.exit_code == 0, run.output
    source = RunSource(location(str(tmp_path / "run")), 1.0)
    at_end = of(source, source.clock.horizon_ns)
    for each in with_numbers(ds.dataset(tmp_path / "run" / "counters").to_table()).to_pylist():
        row = at_end[f"{each['client']}/{each['queue']}"]
        assert (row["delivered"], row["lost"], row["depth"]) == (
            each["delivered_messages"],
            each["discarded_messages"],
            each["length_messages"],
        )
    assert "recordings" in source.look("nobody/D-1").note
    with pytest.raises(NotFound, match="no replication 1"):
        RunSource(location(str(tmp_path / "run")), 1.0, 1)
