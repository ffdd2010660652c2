"""The fold of a recording against the log of the simulator: two ways to make rows out of the same events."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qsctl.core.events import Event
from qsctl.eventlog.recording import story
from qsctl.eventlog.recording.fold import Fold
from qsctl.eventlog.recording.tables import ROW_SCHEMAS, table_of
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.model import NEVER, OUTCOMES, Stop
from qsctl.sim.scenario.xml import read_scenario
from qsctl.sim.service._sample_log import SampleLog
from qsctl.sim.service.run import SharedReaderQueueRun

SCENARIO = Path("fixtures/scenarios/shared-reader-queue.xml")
ROW = ("size_bytes", "enqueued_ns", "enter_ns", "wait_ns", "acknowledge_ns", "outcome", "attempts")


class Simulated:
    """A run of the ready scenario whose events are folded as well."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, level: LogLevel = LogLevel.EVENTS) -> None:
        scenario = dataclasses.replace(read_scenario(SCENARIO, {}, {}), warm_up_ns=0, horizon_ns=3 * SECOND_NS)
        self.events: list[Event] = []
        note = SampleLog.note

        def both(log: SampleLog, event: Event) -> None:
            self.events.append(event)
            note(log, event)

        monkeypatch.setattr(SampleLog, "note", both)
        run = SharedReaderQueueRun(scenario, 0, LogLevel.MESSAGES)
        logs = []
        while run.step(scenario.horizon_ns) is Stop.LOG_FULL:
            logs.append(run.take_log())
        run.finish()
        logs.append(run.take_log())
        self.rows = np.concatenate(logs)
        self.counters = run.counters()
        self.queues = [(f"P/S/{name}", -1) for name in run.queue_names]
        full_names = sorted({each.queue for each in self.events})
        self.fold = Fold("svc", [(name, -1) for name in full_names], 0, level)
        for start in range(0, len(self.events), 100):
            part = story.Happened(self.events[start : start + 100], [])
            self.fold.note(story.decode(story.encode(part)))
        self.fold.note(story.RecordingEnded(scenario.horizon_ns))

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        self.fold.end()
        rows = self.fold.take_rows()
        return {name: table_of(name, each, "run").to_pylist() for name, each in rows.items() if each}


def test_fold_makes_the_rows_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch)
    made = sorted(
        tuple(NEVER if row[name] is None else row[name] for name in ROW) for row in simulated.tables()["messages"]
    )
    expected = sorted(
        tuple(OUTCOMES[row[name]].value if name == "outcome" else int(row[name]) for name in ROW)
        for row in simulated.rows
    )
    assert len(made) > 1_000
    assert made == expected


def test_counters_of_the_fold_are_those_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch)
    made, expected = simulated.fold.counters(3 * SECOND_NS), simulated.counters
    order = [list(made["queue"]).index(queue) for queue in expected["queue"] if queue in made["queue"]]
    there = [at for at, queue in enumerate(expected["queue"]) if queue in made["queue"]]
    assert len(there) == 2
    for name, column in expected.items():
        if name in ("client", "client_id", "max_depth_work_units"):
            continue
        for at, other in zip(there, order, strict=True):
            assert np.array_equal(column[at], made[name][other]), name


def test_counters_in_the_middle_are_those_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are made at each part without ending the recording: they must not depend on having been made."""
    simulated = Simulated(monkeypatch)
    before = simulated.fold.counters(3 * SECOND_NS)
    again = simulated.fold.counters(3 * SECOND_NS)
    for name in before:
        assert all(np.array_equal(one, other) for one, other in zip(before[name], again[name], strict=True)), name


@pytest.mark.slow
def test_arrivals_and_deliveries_add_up_to_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = Simulated(monkeypatch).tables()
    arrivals = {(row["queue"], row["producer"], row["sequence_number"]): row for row in tables["arrivals"]}
    assert len(arrivals) == len(tables["arrivals"]) == len(tables["messages"])
    attempts: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in tables["deliveries"]:
        attempts.setdefault((row["queue"], row["producer"], row["sequence_number"]), []).append(row)
    assert sum(map(len, attempts.values())) == sum(row["attempts"] for row in tables["messages"])
    answers = {row["answer"] for row in tables["deliveries"]}
    assert {"acknowledged", "rejected", "timed_out", "none"} <= answers
    for key, rows in attempts.items():
        rows.sort(key=lambda row: row["attempt"])
        assert [row["attempt"] for row in rows] == list(range(1, len(rows) + 1))
        assert arrivals[key]["answered_ns"] <= rows[0]["sent_ns"]
        for one, other in pairwise(rows):
            assert one["answered_step"] < other["step"]
    origins = {row["queue"].rpartition("/")[2]: row["origin"] for row in tables["arrivals"]}
    assert set(origins.values()) == {"producer", "dead_letter"}
    assert {row["lifespan_ns"] for row in tables["arrivals"] if row["origin"] == "producer"} == {20 * SECOND_NS}


def test_every_table_has_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    fold = Simulated(monkeypatch).fold
    fold.end()
    for name, rows in fold.take_rows().items():
        if rows:
            assert table_of(name, rows, "run").schema.equals(ROW_SCHEMAS[name])


def test_level_counters_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    fold = Simulated(monkeypatch, LogLevel.COUNTERS).fold
    fold.end()
    assert not any(fold.take_rows().values())
    assert sum(fold.counters(1)["delivered_messages"]) > 0
