"""What lies in a run folder against what `run.json` lists: a reader gives the true figures, or one error (status 9)."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qsctl.errors import Damaged, ExitStatus
from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import (
    CHECKSUM_BYTES,
    SCENARIO_FILE,
    ReplicationInfo,
    RunInfo,
    RunStatus,
    describe_text,
    fingerprint_of,
    read_run_info,
    write_run_info,
)
from qsctl.eventlog.schema import COUNTERS
from qsctl.eventlog.writer import ReplicationWriter
from qsctl.sim.model import LOG_ROW
from qsctl.summary.comparison.compare import read_figures
from qsctl.summary.recorded_run import read_run

PART = "messages/replication=1/part-00000.parquet"
COUNTERS_PART = "counters/replication=1/part-00000.parquet"


def counter_columns(delivered: int) -> dict[str, object]:
    """One queue's counters: zero, but for what it delivered."""
    columns: dict[str, object] = {
        field.name: [[]] if pa.types.is_list(field.type) else [0] for field in COUNTERS if field.name != "run_id"
    }
    named = {"client": ["c"], "queue": ["D-1"], "delivered_messages": [delivered], "first_discard_ns": [-1]}
    return columns | named


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of two replications, 100 and 200 messages."""
    import numpy as np

    made = tmp_path / "run"
    made.mkdir()
    (made / SCENARIO_FILE).write_bytes(b"<scenario/>")
    files = {SCENARIO_FILE: describe_text(b"<scenario/>")}
    done = []
    for replication in range(2):
        count = 100 * (replication + 1)
        rows = np.zeros(count, LOG_ROW)
        rows["enqueued_ns"] = np.arange(count)
        rows["size_bytes"] = 100
        with ReplicationWriter(made, replication, "run", ["D-1"]) as writer:
            writer.messages(rows)
            writer.counters(counter_columns(count))
        files |= writer.files
        done.append(
            ReplicationInfo(replication=replication, complete=True, simulated_ns=9, messages=count, message_rows=count)
        )
    info = RunInfo(
        run_id="run", status=RunStatus.COMPLETE, scenario="made", model="solace", seed=1, log_level="messages",
        horizon_ns=9, warm_up_ns=0, replications=2, done=tuple(done), files=files, fingerprint=fingerprint_of(files),
    )  # fmt: skip
    write_run_info(made, info)
    return made


def message_count(folder: Path) -> int:
    return sum(batch.num_rows for batch in open_run(folder).messages())


READERS: dict[str, Callable[[Path], object]] = {
    "messages": message_count,
    "summary": read_run,
}


def every_reader_refuses(folder: Path, *words: str) -> None:
    for reader in READERS.values():
        with pytest.raises(Damaged) as error:
            reader(folder)
        assert error.value.exit_status is ExitStatus.DAMAGED
        for word in words:
            assert word in error.value.message
        assert error.value.remedy


def test_an_untouched_run_is_read_whole(folder: Path) -> None:
    assert message_count(folder) == 300
    assert [batch["delivered_messages"] for batch in open_run(folder).counters().to_pylist()] == [100, 200]
    run = read_run(folder)
    assert (run.message_rows, run.replications) == (300, (0, 1))
    assert sum(part.info.rows for part in run.parts["counters"]) == 2
    assert run.bytes == sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    assert len(read_figures(folder)) == 2


def refusals_of_flipped_bits(folder: Path, places: range, *words: str) -> None:
    """Try each: both readers refuse it, Parquet itself lets some of them pass."""
    whole = (folder / PART).read_bytes()
    still_decoded = 0
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        (folder / PART).write_bytes(changed)
        try:
            pq.read_table(folder / PART)
            still_decoded += 1
        except (OSError, pa.ArrowException):
            pass
        every_reader_refuses(folder, PART, "was changed after it was written", "run.json lists", *words)
    assert still_decoded, "Parquet itself finds all of them: the checksum is not needed"
    (folder / PART).write_bytes(whole)
    assert message_count(folder) == 300


def test_any_flipped_bit_of_a_part_whose_pages_have_no_checksums_is_damage(folder: Path) -> None:
    """A run of before there were any: it is read whole for its one checksum."""
    info = read_run_info(folder)
    files = {name: msgspec.structs.replace(file, footer=msgspec.UNSET) for name, file in info.files.items()}
    write_run_info(folder, msgspec.structs.replace(info, files=files))
    assert '"footer"' not in (folder / "run.json").read_text()
    refusals_of_flipped_bits(folder, range(0, (folder / PART).stat().st_size, 97), "bytes with BLAKE2b")


@pytest.mark.slow
def test_any_flipped_bit_of_a_footer_is_damage_before_spark_starts(folder: Path) -> None:
    """Of the pages Spark finds it, see `tests/summary/test_page_checksums.py`."""
    size = (folder / PART).stat().st_size
    length = int.from_bytes((folder / PART).read_bytes()[-8:-4], "little")
    refusals_of_flipped_bits(folder, range(size - 8 - length, size, 31))
    for place in range(size - 8, size):
        changed = bytearray((folder / PART).read_bytes())
        changed[place] ^= 0x80
        (folder / PART).write_bytes(changed)
        every_reader_refuses(folder, PART, "was changed after it was written")
        changed[place] ^= 0x80
        (folder / PART).write_bytes(changed)


def test_any_flipped_bit_of_a_page_is_damage_for_a_reader_of_rows(folder: Path) -> None:
    whole = (folder / PART).read_bytes()
    for place in range(0, len(whole), 97):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        (folder / PART).write_bytes(changed)
        with pytest.raises(Damaged, match="was changed after it was written"):
            message_count(folder)


def test_a_changed_counter_is_damage_for_a_comparison(folder: Path) -> None:
    part = bytearray((folder / COUNTERS_PART).read_bytes())
    part[len(part) // 2] ^= 1
    (folder / COUNTERS_PART).write_bytes(part)
    with pytest.raises(Damaged, match=r"replication=1/part-00000\.parquet was changed"):
        read_figures(folder)
    with pytest.raises(Damaged, match=r"replication=1/part-00000\.parquet was changed"):
        open_run(folder).counters()


def test_a_missing_part_is_named_with_its_rows(folder: Path) -> None:
    (folder / PART).unlink()
    every_reader_refuses(folder, PART, "is missing", "200 rows")


def test_a_cut_part_is_named_with_both_sizes(folder: Path) -> None:
    size = (folder / PART).stat().st_size
    (folder / PART).write_bytes((folder / PART).read_bytes()[:-20])
    every_reader_refuses(folder, PART, f"has {size - 20} bytes", f"lists it with {size}")


@pytest.mark.parametrize(
    "name", ["part-00001.parquet", "copy of part-00000.parquet", "../replication=2/part-00000.parquet", "../a.parquet"]
)
def test_a_part_that_is_not_listed_is_refused(folder: Path, name: str) -> None:
    place = folder / "messages/replication=1" / name
    place.parent.mkdir(exist_ok=True)
    shutil.copy(folder / PART, place)
    every_reader_refuses(folder, place.name, "does not belong to this run")


def test_two_parts_exchanged_are_damage(folder: Path) -> None:
    other = folder / "messages/replication=0/part-00000.parquet"
    mine, theirs = (folder / PART).read_bytes(), other.read_bytes()
    (folder / PART).write_bytes(theirs)
    other.write_bytes(mine)
    every_reader_refuses(folder, "part-00000.parquet", "bytes")


def test_files_that_no_reader_counts_are_left_alone(folder: Path) -> None:
    for name in (".part-00001.parquet.tmp", "_SUCCESS", "_metadata.parquet", ".DS_Store"):
        (folder / "messages/replication=1" / name).write_bytes(b"x")
    assert message_count(folder) == 300


@pytest.mark.parametrize(
    ("found", "put"),
    [
        ('"warm_up_ns": 0', '"warm_up_ns": 1'),
        ('"log_level": "messages"', '"log_level": "counters"'),
        ('"status": "complete"', '"status": "running"'),
        ('"message_rows": 200', '"message_rows": 100'),
        ('"replication": 1,', '"replication": 3,'),
        ('"fingerprint"', '"fingerprinx"'),
        ("part-00000", "part-00009"),
    ],
)
def test_a_changed_run_json_is_damage(folder: Path, found: str, put: str) -> None:
    text = (folder / "run.json").read_text()
    assert found in text
    (folder / "run.json").write_text(text.replace(found, put, 1))
    with pytest.raises(Damaged, match=r"run\.json was changed after it was written: its seal is"):
        read_run_info(folder)


def test_a_run_json_from_before_a_member_was_added_is_read(folder: Path) -> None:
    """Its seal is over what it says, and says nothing of a member that came later."""
    document = json.loads((folder / "run.json").read_text())
    for replication in document["done"]:
        del replication["replicated_queues"]
    text = json.dumps(document | {"seal": ""}, separators=(",", ":"))
    seal = hashlib.blake2b(text.encode(), digest_size=CHECKSUM_BYTES).hexdigest()
    (folder / "run.json").write_text(json.dumps(document | {"seal": seal}))
    assert read_run_info(folder).done


def test_the_layout_of_run_json_is_free(folder: Path) -> None:
    document = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(document))
    assert message_count(folder) == 300


def test_of_a_killed_run_only_replications_that_ended_are_read(folder: Path) -> None:
    info = read_run_info(folder)
    files = {name: file for name, file in info.files.items() if "replication=1" not in name}
    cut = msgspec.structs.replace(info, status=RunStatus.RUNNING, done=info.done[:1], files=files)
    write_run_info(folder, cut)
    assert message_count(folder) == 100
    assert open_run(folder).counters().num_rows == 1
    assert read_run(folder).replications == (0,)
    shutil.copy(folder / PART, folder / "messages/replication=0/part-00001.parquet")
    every_reader_refuses(folder, "replication=0/part-00001.parquet", "does not belong")


def test_rows_that_a_replication_counted_and_did_not_write_are_damage(folder: Path) -> None:
    info = read_run_info(folder)
    done = (info.done[0], msgspec.structs.replace(info.done[1], message_rows=201))
    write_run_info(folder, msgspec.structs.replace(info, done=done))
    with pytest.raises(Damaged, match="replication 1 has 200 rows of messages; it wrote 201"):
        read_run(folder)


def test_the_scenario_beside_a_run_is_checked(folder: Path) -> None:
    info = read_run_info(folder)
    assert checked_text(folder, info, SCENARIO_FILE) == "<scenario/>"
    (folder / SCENARIO_FILE).write_bytes(b"<scenario />")
    with pytest.raises(Damaged, match=r"scenario\.xml was changed"):
        checked_text(folder, info, SCENARIO_FILE)
    (folder / SCENARIO_FILE).unlink()
    with pytest.raises(Damaged, match=r"scenario\.xml cannot be read"):
        checked_text(folder, info, SCENARIO_FILE)
