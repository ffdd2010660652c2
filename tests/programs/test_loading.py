"""`qsctl.load`: the tables of a folder for other libraries, whatever has become of the folder."""

from __future__ import annotations

import datetime
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import qsctl
from qsctl.errors import Damaged, NotFound, Unavailable, UsageError
from qsctl.eventlog.described import TimeKind, description_of, time_of
from qsctl.eventlog.location import location
from qsctl.eventlog.names import NAME_TABLES
from qsctl.eventlog.run_folder import RunStatus, read_run_info, write_run_info
from qsctl.eventlog.schema import bucket_bounds_ns
from qsctl.eventlog.tables import LOG_TABLES
from qsctl.summary.sweeps.sweep_folder import read_sweep
from tests.eventlog.schema_file import FILE, text

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SETTINGS = {"horizon": "20ms", "group[desks]/count": "2"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loaded") / "run"
    qsctl.simulate("burst", settings=SETTINGS, replications=2, level="events", out=folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept") / "sweep"
    grid = {"max-depth(D-1)": [100, 5000], "profile[trading]/tcp/transmit-queue": ["8 KB", "16 KB"]}
    qsctl.sweep("burst", grid=grid, settings=SETTINGS, replications=2, out=folder)
    return folder


def test_every_column_of_every_table_describes_itself() -> None:
    fields = [field for schema in (*LOG_TABLES.values(), *NAME_TABLES.values()) for field in schema]
    assert [field.name for field in fields if not description_of(field).endswith(".")] == []
    times = [field for field in fields if field.name.endswith("_ns")]
    assert [field.name for field in times if time_of(field) is TimeKind.NONE] == []
    assert {field.name for field in fields if time_of(field)} == {field.name for field in times}


def test_the_schema_file_is_made_from_the_schemas() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "python -m tests.eventlog.schema_file"


def test_files_have_the_descriptions_and_types_of_their_columns(made: Path) -> None:
    schema = pq.read_schema(made / "messages/replication=0/part-00000.parquet")
    assert description_of(schema.field("wait_ns")).startswith("From the arrival to leaving the queue")
    assert schema.field("wait_ns").type == pa.duration("ns")
    assert schema.field("enqueued_ns").type == pa.int64()
    columns = pq.read_table(made / "columns/part-00000.parquet")
    described = {(row["table_name"], row["column_name"]): row for row in columns.to_pylist()}
    assert described["messages", "wait_ns"]["time"] == "duration"
    assert {name for name, _ in described} == {*LOG_TABLES, *NAME_TABLES}


def test_the_tables_of_names_have_every_number_of_the_log(made: Path) -> None:
    data = qsctl.load(made)
    for table, column in (("clients", "client_id"), ("topics", "topic_id"), ("queues", "queue")):
        used = set(data["messages"].arrow([column])[column].to_pylist())
        assert used
        assert used <= set(data[table].arrow()[column].to_pylist())
    settings = {row["setting"]: row for row in data["settings"].arrow().to_pylist()}
    assert (settings["horizon"]["number"], settings["horizon"]["unit"]) == (20_000_000, "ns")
    assert settings["profile[trading]/max-subscriptions"]["number"] is None  # unlimited
    (run,) = data["runs"].arrow().to_pylist()
    assert (run["scenario"], run["status"], run["is_recording"]) == ("burst", "complete", False)


def test_a_table_of_the_level_exists_without_rows(tmp_path: Path) -> None:
    idle = tmp_path / "idle.xml"
    idle.write_text(
        '<scenario name="idle" horizon="1ms"><port name="p"/><profile name="q"/>'
        '<group name="g" port="p" profile="q"/><traffic name="t" to="g"><poisson rate="0.001/s"/><size bytes="8"/>'
        "</traffic></scenario>"
    )
    run = qsctl.simulate(idle, level="messages", out=tmp_path / "run")
    assert run.info.done[0].message_rows == 0
    assert pq.read_table(run.folder / "messages/replication=0/part-00000.parquet").num_rows == 0
    data = qsctl.load(run.folder)
    assert data["messages"].arrow().num_rows == 0
    if find_spec("duckdb"):
        assert data["messages"].duckdb().fetchall() == []
    assert "events" not in data
    with pytest.raises(NotFound, match=r"has no table 'events'"):
        data["events"]


def test_the_same_run_has_the_same_names_wherever_it_lies(made: Path, tmp_path: Path) -> None:
    again = qsctl.simulate("burst", settings=SETTINGS, replications=2, level="events", out=tmp_path / "again")
    assert read_run_info(made).fingerprint == again.info.fingerprint


@pytest.mark.parametrize("table", ["messages", "events", "counters", *NAME_TABLES])
def test_every_library_has_the_same_rows(table: str, made: Path) -> None:
    pytest.importorskip("duckdb")
    loaded = qsctl.load(made)[table]
    arrow = loaded.arrow()
    assert sum(batch.num_rows for batch in loaded.batches()) == arrow.num_rows > 0
    relation = loaded.duckdb()
    assert relation.columns == arrow.schema.names
    assert len(relation.fetchall()) == arrow.num_rows
    for library, frame in (("pandas", loaded.pandas), ("polars", loaded.polars)):
        try:
            __import__(library)
        except ModuleNotFoundError:
            continue
        assert list(frame().columns) == arrow.schema.names
        assert len(frame()) == arrow.num_rows


def test_durations_are_whole_numbers_in_duckdb_and_durations_elsewhere(made: Path) -> None:
    pytest.importorskip("duckdb")
    messages = qsctl.load(made)["messages"]
    ((total,),) = messages.duckdb().aggregate("sum(acknowledge_ns)").fetchall()
    assert messages.arrow().schema.field("acknowledge_ns").type == pa.duration("ns")
    numbers = messages.arrow()["acknowledge_ns"].cast(pa.int64()).to_pylist()
    assert total == sum(each or 0 for each in numbers) > 0


def test_the_bounds_of_a_bucket_are_those_of_the_page() -> None:
    duckdb = pytest.importorskip("duckdb")
    page = qsctl_page("reference-event-log")
    formula = page.partition("```sql\n")[2].partition("```")[0]
    rows = duckdb.sql(f"select b, {formula} from range(0, 7000) as numbers(b)").fetchall()
    assert rows == [(bucket, *bucket_bounds_ns(bucket)) for bucket in range(7000)]


def qsctl_page(name: str) -> str:
    from qsctl.cli.help.topics import page

    return page(name)


def test_some_columns_are_read_in_the_order_that_is_asked_for(made: Path) -> None:
    messages = qsctl.load(made)["messages"]
    assert messages.arrow(["replication", "queue"]).schema.names == ["replication", "queue"]
    assert messages.arrow(["replication"]).num_rows == messages.arrow().num_rows
    with pytest.raises(UsageError, match=r"no column 'weight'.*"):
        messages.arrow(["weight"])
    with pytest.raises(UsageError):
        messages.batches([])


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
def test_a_library_that_is_missing_is_named(library: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = qsctl.load(made)["clients"]
    monkeypatch.setattr("importlib.import_module", _without(library))
    with pytest.raises(Unavailable, match=f"{library} is not installed") as found:
        getattr(table, library)()
    assert found.value.remedy == f"Install it: pip install {library}."


def _without(library: str) -> Any:
    def find(name: str) -> Any:
        if name == library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        raise AssertionError(name)

    return find


def test_a_folder_that_was_renamed_is_read_and_a_missing_one_is_named(folder: Path) -> None:
    data = qsctl.load(folder)
    moved = folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(Damaged, match="missing"):
        data["messages"].arrow()
    assert qsctl.load(moved)["messages"].arrow().num_rows > 0
    with pytest.raises(NotFound, match="is not a folder"):
        qsctl.load(folder)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"has no run\.json"):
        qsctl.load(tmp_path)


@pytest.mark.parametrize("table", ["messages", "clients"])
def test_a_foreign_file_and_a_changed_one_are_refused(table: str, folder: Path) -> None:
    (part,) = list((folder / table).rglob("part-00000.parquet"))[:1]
    shutil.copy(part, part.with_name("part-00001.parquet"))
    with pytest.raises(Damaged, match="does not belong to this run"):
        qsctl.load(folder)[table].arrow()
    part.with_name("part-00001.parquet").unlink()
    octets = bytearray(part.read_bytes())
    octets[len(octets) // 2] ^= 1
    part.write_bytes(octets)
    data = qsctl.load(folder)[table]
    for read in (data.arrow, *([data.duckdb] if find_spec("duckdb") else [])):
        with pytest.raises(Damaged, match="was changed"):
            read()


def test_other_files_beside_the_tables_are_passed_over(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "clients" / "_SUCCESS").write_text("")
    assert qsctl.load(folder)["clients"].arrow().num_rows == 2


def test_a_run_that_was_killed_has_the_names_of_what_ended(folder: Path) -> None:
    info = read_run_info(folder)
    kept = {name: each for name, each in info.files.items() if name.partition("/")[0] not in NAME_TABLES}
    for name in info.files.keys() - kept.keys():
        (folder / name).unlink()
    write_run_info(folder, msgspec.structs.replace(info, status=RunStatus.RUNNING, files=kept, fingerprint=""))
    data = qsctl.load(folder)
    assert data["clients"].arrow()["client"].to_pylist() == ["desks/1", "desks/2"]
    assert data["topics"].arrow().num_rows == 5
    assert data["runs"].arrow()["status"].to_pylist() == ["running"]
    assert data["messages"].arrow().num_rows == info.done[0].message_rows + info.done[1].message_rows


def test_a_sweep_has_a_column_a_setting_and_a_measure_with_its_interval(swept: Path) -> None:
    data = qsctl.load(swept)
    assert list(data) == ["measures", "points"]
    measures = data["measures"].arrow()
    depth, buffer = "profile[*]/queue[D-1]/max-depth", "profile[trading]/tcp/transmit-queue"
    assert measures.schema.field(depth).type == pa.int64()
    assert set(measures[buffer].to_pylist()) == {"8 KB", "16 KB"}
    rows = [row for row in measures.to_pylist() if row["queue"] == "D-1"]
    assert len(rows) == 4
    points = data["points"].arrow().to_pylist()
    for row in rows:
        own = [each for each in points if each["point"] == row["point"] and each["queue"] == "D-1"]
        assert row["repetitions"] == len(own) == 2
        assert row["delivered"] == sum(each["delivered_messages"] for each in own) / 2
        spread = abs(own[0]["delivered_messages"] - own[1]["delivered_messages"]) / 2
        assert row["delivered_half_width"] == pytest.approx(12.7062 * spread, rel=1e-4)
        assert (row[depth], row[buffer]) == (own[0][depth], own[0][buffer])
    wide = qsctl.load(swept, confidence=0.99)["measures"].arrow()
    widths = [table["delivered_half_width"].drop_null().to_pylist() for table in (measures, wide)]
    assert max(widths[1]) > max(widths[0])


def test_a_confidence_of_a_run_and_one_outside_are_refused(swept: Path, made: Path) -> None:
    with pytest.raises(UsageError, match="not inside 0 and 1"):
        qsctl.load(swept, confidence=1.0)
    with pytest.raises(UsageError, match="a run has no intervals"):
        qsctl.load(made, confidence=0.9)


def test_a_sweep_whose_document_was_changed_is_damaged(swept: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(swept, tmp_path / "copy")
    file = copy / "sweep.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"seed": 99}))
    with pytest.raises(Damaged, match="was changed"):
        qsctl.load(copy)


def test_a_recording_that_a_service_writes_explains_itself_before_and_after_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    with qsctl.Service.embedded(tmp_path / "state") as service:
        service.create_queue("Orders")
        service.record_start(folder, level="events")
        begun = qsctl.load(folder)
        assert begun["runs"].arrow()["status"].to_pylist() == ["running"]
        assert begun["arrivals"].arrow().num_rows == 0
        service.produce("Orders", [b"1", b"2"])
        service.record_stop()
    data = qsctl.load(folder)
    assert data["arrivals"].arrow()["queue"].to_pylist() == ["DomainParticipant/SharedSubscriber/Orders"] * 2
    assert data["queues"].arrow()["full_name"].to_pylist() == ["DomainParticipant/SharedSubscriber/Orders"]
    used = set(data["messages"].arrow()["topic_id"].to_pylist())
    assert used
    assert used <= set(data["topics"].arrow()["topic_id"].to_pylist())
    for table in ("events", "commands", "deliveries"):
        assert list((folder / table).rglob("*.parquet")), table
    (run,) = data["runs"].arrow(["status", "is_recording", "started_at"]).to_pylist()
    assert (run["status"], run["is_recording"]) == ("complete", True)
    recording = read_run_info(folder).recording
    assert recording
    assert run["started_at"] == EPOCH + datetime.timedelta(microseconds=recording.started_at_ns // 1000)
    assert begun["arrivals"].arrow().num_rows == 2  # the folder as it is now


def test_rows_of_a_sweep_are_in_the_order_of_its_grid(swept: Path) -> None:
    depth, buffer = "profile[*]/queue[D-1]/max-depth", "profile[trading]/tcp/transmit-queue"
    grid = [(axis["path"], axis["values"]) for axis in read_sweep(location(swept))["axes"]]
    assert [path for path, _ in grid] == [depth, buffer]
    expected = [(int(first), second) for first in grid[0][1] for second in grid[1][1]]
    for name in ("measures", "points"):
        rows = qsctl.load(swept)[name].arrow().select([depth, buffer]).to_pylist()
        assert list(dict.fromkeys((row[depth], row[buffer]) for row in rows)) == expected
