"""A run folder of format 3, before durations had a type and names had tables: it is read as it always was.

The folder is of `qsctl simulate burst --set horizon=60ms --set 'group[desks]/count=2' --level events --replications 2
--seed 7` with a depth of 100, and its figures are those that the version which wrote it printed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import qsctl
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import read_run_info, write_run_info
from qsctl.sim.replay.recording import read_recording

FOLDER = Path(__file__).parent / "earlier_formats/format-3"
RECORDING = Path(__file__).parents[2] / "fixtures/recordings/monday"


def test_its_rows_and_counters_are_those_that_were_written() -> None:
    run = open_run(FOLDER)
    counters = run.counters()
    messages = pa.Table.from_batches(run.messages())
    assert (run.info.format, counters.num_rows, messages.num_rows) == (3, 17, 2008)
    assert sum(counters["delivered_messages"].to_pylist()) == 2008
    assert sum(each or 0 for each in messages["acknowledge_ns"].to_pylist()) == 2_045_175_252
    assert sum(batch.num_rows for batch in run.events()) == 4
    assert pq.read_schema(FOLDER / "messages/replication=0/part-00000.parquet").field("wait_ns").type == pa.int64()


def test_loaded_it_has_the_same_tables_and_types_as_a_new_one(tmp_path: Path) -> None:
    earlier = qsctl.load(FOLDER)
    new = qsctl.simulate("burst", settings={"horizon": "20ms"}, level="events", out=tmp_path / "new")
    later = qsctl.load(new.folder)
    assert list(earlier) == list(later)
    for name, table in earlier.items():
        assert table.arrow().schema.equals(later[name].arrow().schema, check_metadata=True), name
    assert earlier["topics"].arrow()["topic"].to_pylist() == ["quotes", "trades", "alerts", "orders", "control"]
    assert earlier["clients"].arrow()["client"].to_pylist() == ["desks/1", "desks/2"]


def test_its_document_keeps_its_format_when_it_is_written_again(tmp_path: Path) -> None:
    copy = shutil.copytree(FOLDER, tmp_path / "copy")
    write_run_info(copy, read_run_info(copy))
    assert read_run_info(copy).format == 3
    assert open_run(copy).counters().num_rows == 17


@pytest.mark.parametrize("table", ["messages", "arrivals", "deliveries", "peers", "commands", "counters"])
def test_an_earlier_recording_is_loaded(table: str) -> None:
    data = qsctl.load(RECORDING)
    assert read_run_info(RECORDING).format == 3
    assert data[table].arrow().schema == data[table].schema
    assert data["queues"].arrow()["full_name"].to_pylist() == ["P/S/Dead", "P/S/Orders", "P/S/Jobs"]
    assert data["topics"].arrow()["topic_id"].to_pylist() == list(range(10))


def test_an_earlier_recording_is_replayed() -> None:
    assert read_recording(RECORDING).info.recording
