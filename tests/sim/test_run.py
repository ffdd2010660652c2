"""Runs: the folder's content, the same bytes for the same seed, stops that leave a readable partial run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from qsctl.errors import Damaged, InvalidInput, NotFound
from qsctl.eventlog.names import NAME_TABLES
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import RunStatus, new_folder, read_run_info
from qsctl.eventlog.schema import COUNTERS, SINCE_DONE, LogLevel
from qsctl.sim.model import CHUNK_ROWS, EVENT_ROW, LOG_ROW, Stop
from qsctl.sim.run import ReplicationProgress, run, simulate_counters
from qsctl.sim.scenario.scenario import ClientGroup, PoissonArrivals, Port, Profile, Scenario, Traffic

MILLISECOND = 1_000_000
COUNTS = [field.name for field in COUNTERS if pa.types.is_int64(field.type) and field.name != "first_discard_ns"]


def small_scenario(**changes: Any) -> Scenario:
    scenario = Scenario(
        name="small",
        horizon_ns=100 * MILLISECOND,
        ports=(Port("p1"),),
        profiles=(Profile("default"),),
        groups=(ClientGroup("web", "p1", "default", count=3),),
        traffic=(Traffic("web", "web", PoissonArrivals(2000.0)),),
    )
    return dataclasses.replace(scenario, **changes)


class EveryMillisecond:
    """A message each millisecond, its size drawn from the seed; an event each ten; the chunk fills early."""

    def __init__(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int) -> None:
        self.now_ns = 0
        self.messages = 0
        self._level = level
        self._random = np.random.default_rng([scenario.seed, replication])
        self._chunk_rows = chunk_rows
        self._rows: list[tuple[int, ...]] = []
        self._events: list[tuple[int, ...]] = []
        self._held = 1

    def step(self, until_ns: int) -> Stop:
        while (self.messages + 1) * MILLISECOND < until_ns:
            if len(self._rows) == self._chunk_rows:
                return Stop.LOG_FULL
            self.messages += 1
            at = self.messages * MILLISECOND
            size = int(self._random.integers(1, 5000))
            self._rows.append((at, 0, 5, 10, 1000, 0, 7, size, 1, 1, 0, 0))
            if self.messages % 10 == 0:
                self._events.append((at, 1, -1, -1, 0))
        self.now_ns = until_ns
        return Stop.UNTIL

    def take_log(self) -> np.ndarray:
        rows = np.array(self._rows if self._level is not LogLevel.COUNTERS else [], LOG_ROW)
        self._rows = []
        return rows

    def take_events(self) -> np.ndarray:
        events = np.array(self._events if self._level is LogLevel.EVENTS else [], EVENT_ROW)
        self._events = []
        return events

    def finish(self) -> Stop:
        if self._held and len(self._rows) == self._chunk_rows:
            return Stop.LOG_FULL
        if self._held:
            self._held = 0
            self._rows.append((self.now_ns, 0, -1, -1, -1, 0, 7, 100, 0, 1, 5, 0))
        return Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        names = COUNTS
        columns: dict[str, Any] = {name: np.zeros(1, np.int64) for name in names}
        columns["arrived_messages"] = np.array([self.messages + 1])
        columns["delivered_messages"] = np.array([self.messages])
        return columns | {
            "client_id": np.zeros(1, np.int32),
            "client": ["web"],
            "queue": ["D-1"],
            "first_discard_ns": np.array([-1]),
            "histogram_bucket": [np.array([5])],
            "histogram_count": [np.array([self.messages])],
            **{name: [np.array([], np.int64)] for name in SINCE_DONE if name.endswith(("_bucket", "_count"))},
            **{name: np.array([-1]) for name in SINCE_DONE if not name.endswith(("_bucket", "_count"))},
        }


class FakeModel:
    def __init__(self, chunk_rows: int = CHUNK_ROWS) -> None:
        self._chunk_rows = chunk_rows

    def prepare(
        self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS
    ) -> EveryMillisecond:
        return EveryMillisecond(scenario, replication, level, min(chunk_rows, self._chunk_rows))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_folder_holds_the_scenario_what_was_run_the_three_tables_and_names(tmp_path: Path) -> None:
    report = run(small_scenario(), tmp_path / "a", level=LogLevel.EVENTS, replications=2, model=FakeModel())
    assert set(contents(tmp_path / "a")) == {
        "run.json", "scenario.xml",
        *(f"{table}/replication={n}/part-00000.parquet" for table in ("messages", "counters", "events") for n in "01"),
        *(f"{table}/part-00000.parquet" for table in NAME_TABLES),
    }  # fmt: skip
    assert report.info.status is RunStatus.COMPLETE
    assert [each.message_rows for each in report.info.done] == [100, 100]
    assert [each.event_rows for each in report.info.done] == [9, 9]
    assert report.info.delivered_messages == 198
    opened = open_run(tmp_path / "a")
    assert opened.info == report.info
    assert sum(batch.num_rows for batch in opened.messages()) == 200
    assert sum(batch.num_rows for batch in opened.events()) == 18
    assert opened.counters()["replication"].to_pylist() == [0, 1]


def test_rows_reach_the_log_as_the_model_wrote_them(tmp_path: Path) -> None:
    run(small_scenario(), tmp_path / "a", model=FakeModel())
    rows = [row for batch in open_run(tmp_path / "a").messages() for row in batch.to_pylist()]
    first, last = rows[0], rows[-1]
    assert (first["enqueued_ns"], first["enter_ns"], first["wait_ns"], first["send_ns"], first["acknowledge_ns"]) == (
        MILLISECOND, 0, 5, 10, 1000,
    )  # fmt: skip
    assert (first["queue"], first["outcome"], first["topic_id"], first["attempts"]) == ("D-1", "delivered", 7, 1)
    assert first["work_units"] == max(1, -(-first["size_bytes"] // 2048))
    assert (last["outcome"], last["wait_ns"], last["send_ns"], last["acknowledge_ns"]) == ("held", None, None, None)


def test_the_same_seed_writes_the_same_bytes_however_the_model_cuts_its_log(tmp_path: Path) -> None:
    scenario = small_scenario(log_level="events")
    for folder, chunk_rows in (("a", 7), ("b", CHUNK_ROWS), ("c", 50)):
        run(scenario, tmp_path / folder, model=FakeModel(chunk_rows), reproduce="qsctl simulate small.xml")
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")


def test_another_seed_and_another_replication_write_other_rows(tmp_path: Path) -> None:
    one = run(small_scenario(), tmp_path / "a", model=FakeModel(), replications=2)
    other = run(small_scenario(), tmp_path / "b", model=FakeModel(), replications=2, seed=2)
    assert one.info.run_id != other.info.run_id
    sizes: dict[tuple[str, int], list[int]] = {}
    for name in ("a", "b"):
        for batch in open_run(tmp_path / name).messages():
            for row in batch.to_pylist():
                sizes.setdefault((name, row["replication"]), []).append(row["size_bytes"])
    assert len({tuple(each) for each in sizes.values()}) == 4


def test_a_replication_writes_the_same_rows_however_many_follow_it(tmp_path: Path) -> None:
    run(small_scenario(), tmp_path / "one", model=FakeModel())
    run(small_scenario(), tmp_path / "three", model=FakeModel(), replications=3)
    part = "messages/replication=0/part-00000.parquet"
    assert contents(tmp_path / "one")[part] == contents(tmp_path / "three")[part]


def test_a_stopped_run_is_readable_and_marked_as_partial(tmp_path: Path) -> None:
    heard: list[ReplicationProgress] = []
    report = run(
        small_scenario(), tmp_path / "a", model=FakeModel(), replications=3,
        progress=heard.append, stop=lambda: len(heard) >= 2,
    )  # fmt: skip
    assert report.info.status is RunStatus.PARTIAL
    assert read_run_info(tmp_path / "a").status is RunStatus.PARTIAL
    assert len(report.info.done) == 1
    assert 0 < report.info.done[0].simulated_ns < 100 * MILLISECOND
    rows = [row for batch in open_run(tmp_path / "a").messages() for row in batch.to_pylist()]
    assert len(rows) == report.info.done[0].message_rows > 0


def test_a_run_of_a_long_horizon_looks_for_a_stop_soon(tmp_path: Path) -> None:
    heard: list[ReplicationProgress] = []
    scenario = dataclasses.replace(small_scenario(), horizon_ns=86_400_000 * MILLISECOND)
    report = run(scenario, tmp_path / "a", model=FakeModel(), progress=heard.append, stop=lambda: bool(heard))
    assert report.info.status is RunStatus.PARTIAL
    assert 0 < report.info.done[0].simulated_ns <= 10 * MILLISECOND


def test_control_c_leaves_a_partial_run(tmp_path: Path) -> None:
    def interrupt(progress: ReplicationProgress) -> None:
        if progress.simulated_ns > 10 * MILLISECOND:
            raise KeyboardInterrupt

    report = run(small_scenario(), tmp_path / "a", model=FakeModel(), progress=interrupt)
    assert report.info.status is RunStatus.PARTIAL
    assert report.info.done[0].message_rows > 9


def test_a_run_that_was_killed_is_still_marked_as_running(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def kill(_: ReplicationProgress) -> None:
        raise Killed

    with pytest.raises(Killed):
        run(small_scenario(), tmp_path / "a", model=FakeModel(), progress=kill)
    assert read_run_info(tmp_path / "a").status is RunStatus.RUNNING


def test_a_run_never_overwrites(tmp_path: Path) -> None:
    run(small_scenario(), tmp_path / "a", model=FakeModel())
    before = contents(tmp_path / "a")
    with pytest.raises(InvalidInput, match="is not empty"):
        run(small_scenario(), tmp_path / "a", model=FakeModel())
    assert contents(tmp_path / "a") == before
    assert [new_folder("x", tmp_path / "runs").name for _ in range(3)] == ["x-1", "x-2", "x-3"]


def test_counters_without_a_folder_are_those_of_the_run(tmp_path: Path) -> None:
    report = run(small_scenario(), tmp_path / "a", model=FakeModel(), replications=2)
    alone = simulate_counters(small_scenario(), 1, model=FakeModel())
    assert alone.to_pylist() == report.counters.drop_columns("replication").slice(1, 1).to_pylist()


def test_what_is_no_run_folder_or_is_damaged_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"has no run\.json"):
        open_run(tmp_path)
    with pytest.raises(NotFound, match="is not a folder"):
        open_run(tmp_path / "nowhere")
    run(small_scenario(), tmp_path / "a", model=FakeModel(), level=LogLevel.COUNTERS)
    with pytest.raises(NotFound, match="log level is counters"):
        open_run(tmp_path / "a").messages()
    with pytest.raises(NotFound, match="log level is counters"):
        open_run(tmp_path / "a").events()
    part = tmp_path / "a/counters/replication=0/part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(Damaged, match=r"part-00000\.parquet has \d+ bytes; run\.json lists it with \d+"):
        open_run(tmp_path / "a").counters()
    (tmp_path / "a/run.json").write_text('{"format": 1', encoding="utf-8")
    with pytest.raises(Damaged, match=r"run\.json is damaged"):
        open_run(tmp_path / "a")
    (tmp_path / "a/run.json").write_text((tmp_path / "a/run.json").read_text() + "nonsense", encoding="utf-8")
    with pytest.raises(Damaged):
        open_run(tmp_path / "a")


def test_a_broken_scenario_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no <traffic>"):
        run(small_scenario(traffic=()), tmp_path / "a")
    assert not (tmp_path / "a").exists()
