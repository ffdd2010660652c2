"""The writer: parts of a bounded size, hidden until they are whole, one clear error when the disk says no."""

from __future__ import annotations

import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qsctl.errors import Damaged, InvalidInput, NotFound, QsctlError
from qsctl.eventlog import writer as writer_module
from qsctl.eventlog.run_folder import (
    FileInfo,
    RunInfo,
    RunStatus,
    claim_folder,
    describe_file,
    footer_checksum,
    read_run_info,
    release_claim,
    write_run_info,
)
from qsctl.eventlog.schema import MESSAGES
from qsctl.eventlog.writer import PartWriter, ReplicationWriter
from qsctl.sim.model import LOG_ROW
from tests.eventlog.parts import parts_of


def message_rows(count: int, start: int = 0) -> np.ndarray:
    rows = np.zeros(count, LOG_ROW)
    rows["enqueued_ns"] = np.arange(start, start + count)
    rows["size_bytes"] = 100
    return rows


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr(writer_module, "PART_ROW_GROUPS", 3)


def test_a_long_log_becomes_several_parts_in_order(tmp_path: Path, small_groups: None) -> None:
    with ReplicationWriter(tmp_path, 4, "run", ["D-1"]) as writer:
        for start in range(0, 75, 5):
            writer.messages(message_rows(5, start))
    parts = parts_of(tmp_path, "messages")
    assert [str(part.relative_to(tmp_path)) for part in parts] == [
        f"messages/replication=4/part-0000{n}.parquet" for n in range(3)
    ]
    assert [pq.read_metadata(part).num_row_groups for part in parts] == [3, 3, 2]
    times = [value for part in parts for value in pq.ParquetFile(part).read()["enqueued_ns"].to_pylist()]
    assert times == list(range(75))
    assert writer.message_rows == 75
    assert writer.files == {
        str(part.relative_to(tmp_path)): FileInfo(
            bytes=part.stat().st_size,
            blake2b=hashlib.blake2b(part.read_bytes(), digest_size=16).hexdigest(),
            rows=rows,
            footer=footer_checksum(part),
        )
        for part, rows in zip(parts, (30, 30, 15), strict=True)
    }


@pytest.mark.parametrize(("sizes", "has_dictionary"), [(256, True), (257, False)])
def test_sizes_of_many_values_have_no_dictionary(tmp_path: Path, sizes: int, has_dictionary: bool) -> None:
    rows = message_rows(1000)
    rows["size_bytes"] = 100 + np.arange(1000) % sizes
    with ReplicationWriter(tmp_path, 0, "run", ["D-1"]) as writer:
        writer.messages(rows)
    (part,) = parts_of(tmp_path, "messages")
    column = pq.read_metadata(part).row_group(0).column(MESSAGES.get_field_index("size_bytes"))
    assert ("RLE_DICTIONARY" in column.encodings) is has_dictionary
    assert ("DELTA_BINARY_PACKED" in column.encodings) is not has_dictionary
    assert pq.ParquetFile(part).read()["size_bytes"].to_pylist() == rows["size_bytes"].tolist()


def test_rows_may_change_after_they_were_handed_over(tmp_path: Path) -> None:
    rows = message_rows(1000)
    with ReplicationWriter(tmp_path, 0, "run", ["D-1"]) as writer:
        writer.messages(rows)
        rows["enqueued_ns"] = -7
    (part,) = parts_of(tmp_path, "messages")
    assert pq.ParquetFile(part).read()["enqueued_ns"].to_pylist() == list(range(1000))


def test_a_part_is_hidden_until_it_is_whole(tmp_path: Path) -> None:
    parts = PartWriter(tmp_path, "messages", 0, MESSAGES)
    parts.write(writer_module.message_table(message_rows(3), "run", ["D-1"]))
    assert parts_of(tmp_path, "messages") == []
    assert [path.name for path in (tmp_path / "messages/replication=0").iterdir()] == [".part-00000.parquet.tmp"]
    parts.close()
    assert [path.name for path in (tmp_path / "messages/replication=0").iterdir()] == ["part-00000.parquet"]


def test_times_are_delta_packed_and_names_are_dictionaries(tmp_path: Path) -> None:
    with ReplicationWriter(tmp_path, 0, "run", ["D-1"]) as writer:
        writer.messages(message_rows(100_000))
    (part,) = parts_of(tmp_path, "messages")
    group = pq.read_metadata(part).row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in encodings["enqueued_ns"]
    assert "RLE_DICTIONARY" in encodings["outcome"]
    assert part.stat().st_size < 100_000, "a regular stream takes less than a byte a row"


def test_a_failing_disk_is_one_clear_error_and_blocks_no_caller(tmp_path: Path, small_groups: None) -> None:
    (tmp_path / "messages").write_text("in the way")
    with pytest.raises(QsctlError, match="the event log cannot be written"), \
            ReplicationWriter(tmp_path, 0, "run", ["D-1"]) as writer:  # fmt: skip
        for _ in range(100):
            writer.messages(message_rows(10))


def test_an_error_of_the_model_is_not_hidden_by_the_writer(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ReplicationWriter(tmp_path, 0, "run", ["D-1"]) as writer:
        writer.messages(message_rows(10))
        raise ZeroDivisionError
    assert len(parts_of(tmp_path, "messages")) == 1


def info() -> RunInfo:
    return RunInfo(
        run_id="r", status=RunStatus.COMPLETE, scenario="s", model="solace", seed=1, log_level="messages",
        horizon_ns=1, warm_up_ns=0, replications=1,
    )  # fmt: skip


def test_run_json_is_written_whole_and_read_back(tmp_path: Path) -> None:
    write_run_info(tmp_path, info())
    assert read_run_info(tmp_path) == info()
    assert json.loads((tmp_path / "run.json").read_text())["seal"]
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_later_format_and_an_unknown_status_are_refused(tmp_path: Path) -> None:
    write_run_info(tmp_path, info())
    document = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(document | {"format": 99}))
    with pytest.raises(Damaged, match="has format 99, this qsctl reads 3 and 4"):
        read_run_info(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps(document | {"format": 1}))
    with pytest.raises(Damaged, match="has format 1, which lacks what this qsctl needs; it reads 3 and 4"):
        read_run_info(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps(document | {"status": "odd"}))
    with pytest.raises(Damaged, match=r"run\.json is damaged"):
        read_run_info(tmp_path)
    with pytest.raises(NotFound):
        read_run_info(tmp_path / "run.json")


def test_a_folder_is_claimed_only_when_it_is_empty(tmp_path: Path) -> None:
    assert claim_folder(tmp_path / "new" / "deep").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="the folder cannot be created"):
        claim_folder(tmp_path / "file")
    with pytest.raises(InvalidInput, match="is not empty"):
        claim_folder(tmp_path)


def test_of_many_commands_that_claim_an_empty_folder_one_gets_it(tmp_path: Path) -> None:
    for attempt in range(20):
        folder = tmp_path / f"run-{attempt}"
        together = threading.Barrier(8)

        def claim(folder: Path = folder, together: threading.Barrier = together) -> bool:
            together.wait()
            try:
                claim_folder(folder)
            except InvalidInput as error:
                assert "is not empty" in error.message
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            claims = [threads.submit(claim) for _ in range(8)]
        assert sum(each.result() for each in claims) == 1
        release_claim(folder)
        assert not any(folder.iterdir())


def test_a_part_of_another_version_is_named(tmp_path: Path) -> None:
    from qsctl.eventlog.reader import batches_of

    folder = tmp_path / "messages" / "replication=0"
    folder.mkdir(parents=True)
    part = folder / "part-00000.parquet"
    pq.write_table(pa.table({"a": [1]}), part)
    listed = msgspec.structs.replace(info(), files={str(part.relative_to(tmp_path)): describe_file(part, 1)})
    with pytest.raises(Damaged, match="does not have the columns of messages"):
        list(batches_of(tmp_path, listed, "messages"))
