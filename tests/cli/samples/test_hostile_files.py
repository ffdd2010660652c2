"""Files that are made to fill a memory or to end a command by a fault: one clear error each, and little memory."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qsctl.cli.samples.sample_files import EXPANDED_BYTES_MIN, SAMPLE_BYTES_MAX, FileFormat, read_samples
from qsctl.errors import ExitStatus, InvalidInput, UsageError
from qsctl.instant import INFINITE_NS, format_duration, parse_duration
from tests.processes import run

MEBIBYTE = 1 << 20


def samples_of(file: Path, form: FileFormat = FileFormat.JSONL) -> int:
    return sum(1 for _ in read_samples(file, file.name, form, None, "DDS::String"))


def line_file(tmp_path: Path, octets: bytes) -> Path:
    file = tmp_path / "samples.jsonl"
    file.write_bytes(octets)
    return file


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"payload": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "line 1: it is nested too deeply"),
        (b'{"payload": "\xff"}', "line 1 is not UTF-8: octet 0xff at offset 13"),
        (b'{"payload": "x", "other": "\xff"}', "line 1 is not UTF-8: octet 0xff"),
        (b'{"payload": ' + b"9" * 5000 + b"}", "line 1: payload is 9999"),
        (b'{"payload": ' + b"9" * 5000 + b', "payload_encoding": "json"}', "line 1: payload: .* too long"),
        (b'{"payload": "x", "attempts": -5}', "line 1: attempts is -5"),
        (b'{"payload": "x", "attempts": 2147483648}', "line 1: attempts is 2147483648"),
        (b'{"payload": "x", "enqueued_at_ns": -1}', "line 1: enqueued_at_ns is -1"),
        (b'{"payload": "x", "expires_at_ns": -1}', "line 1: expires_at_ns is -1"),
        (b'{"payload": "x", "expires_at_ns": 9223372036854775808}', "line 1: expires_at_ns is 9223372036854775808"),
        (b'{"payload": "x", "position": -1}', "line 1: position is -1"),
    ],
)
def test_a_line_is_one_error(line: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        samples_of(line_file(tmp_path, line))
    assert len(caught.value.message) < 300
    assert caught.value.remedy


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.cli.samples.sample_files.LINE_BYTES_MAX", 1000)
    assert samples_of(line_file(tmp_path, b'{"payload": "x"}\n' * 3)) == 3
    with pytest.raises(InvalidInput, match="line 2 is longer than 1000 octets"):
        samples_of(line_file(tmp_path, b'{"payload": "x"}\n' + b" " * 2000))


def parquet(tmp_path: Path, payloads: Any, **columns: Any) -> Path:
    file = tmp_path / "samples.parquet"
    pq.write_table(pa.table({"payload": payloads, **columns}), file, compression="zstd")
    return file


def test_a_row_that_is_larger_than_a_sample_is_refused(tmp_path: Path) -> None:
    file = parquet(tmp_path, pa.array([bytes(SAMPLE_BYTES_MAX + 1)], pa.binary()))
    assert file.stat().st_size < MEBIBYTE
    with pytest.raises(InvalidInput, match=f"row 1: payload has {SAMPLE_BYTES_MAX + 1} octets"):
        samples_of(file, FileFormat.PARQUET)


def test_a_file_that_declares_far_more_than_it_has_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = parquet(tmp_path, pa.array([bytes(EXPANDED_BYTES_MIN + 1)], pa.binary()))
    with pytest.raises(InvalidInput, match="stands for more than"):
        samples_of(file, FileFormat.PARQUET)


def test_rows_that_are_larger_than_samples_are_refused_before_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    monkeypatch.setattr("qsctl.cli.samples.sample_files.SAMPLE_BYTES_MAX", MEBIBYTE)
    with pytest.raises(InvalidInput, match=r"has rows of 104\d{5} octets"):
        samples_of(parquet(tmp_path, pa.array([bytes(10 * MEBIBYTE)], pa.binary())), FileFormat.PARQUET)


@pytest.mark.parametrize(("size_bytes", "rows"), [(1000, 9), (1, 1000), (20_000, 1)])
def test_as_many_rows_are_in_memory_as_have_room(
    size_bytes: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches

    def noted(self: pq.ParquetFile, batch_size: int) -> Any:
        asked.append(batch_size)
        return iter_batches(self, batch_size)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    monkeypatch.setattr("qsctl.cli.samples.sample_files.BATCH_BYTES", 10_000)
    file = parquet(tmp_path, pa.array([os.urandom(size_bytes) for _ in range(200)], pa.binary()))
    assert samples_of(file, FileFormat.PARQUET) == 200
    assert asked == [pytest.approx(rows, abs=1)]


def test_rows_that_repeat_one_content_without_end_are_refused_and_held_once(tmp_path: Path) -> None:
    """A few octets a row in the file, a mebibyte in the queue."""
    indices = pa.array([0] * 100_000, pa.int32())
    payloads = pa.DictionaryArray.from_arrays(indices, pa.array([bytes(MEBIBYTE)], pa.binary()))
    file = parquet(tmp_path, payloads)
    assert file.stat().st_size < 20_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidInput, match="stands for more than"):
        samples_of(file, FileFormat.PARQUET)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


@pytest.mark.parametrize(
    ("file", "reason"), [("index_without_value", "out of bounds"), ("two_schemas_at_odds", "payload")]
)
def test_a_parquet_file_that_contradicts_itself_is_one_error(file: str, reason: str) -> None:
    corpus = Path(__file__).parents[2] / "fuzz" / "corpus" / "sample_tables"
    with pytest.raises(InvalidInput, match=rf"is not a Parquet file: .*{reason}"):
        samples_of(corpus / f"{file}.parquet", FileFormat.PARQUET)


def test_a_parquet_file_gives_its_samples_and_columns_of_others_are_left_out(tmp_path: Path) -> None:
    payloads = pa.array([b"a", b"b", b"a"], pa.binary())
    file = parquet(tmp_path, payloads, attempts=[1, None, 2], theirs=[1.5, 2.5, 3.5], source_guid=["", "2" * 32, None])
    found = list(read_samples(file, "f", FileFormat.PARQUET, None, "DDS::String"))
    assert [each.payload for each in found] == [b"a", b"b", b"a"]
    assert [each.source_guid.hex()[:1] for each in found] == ["0", "2", "0"]


@pytest.mark.parametrize("text", ["9" * 5000 + "s", "1s" * 200, "0." + "9" * 5000 + "s"])
def test_a_duration_of_thousands_of_letters_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration") as caught:
        parse_duration(text)
    assert len(caught.value.message) < 200


def test_every_duration_that_is_written_is_read() -> None:
    for duration_ns in (1, INFINITE_NS - 1, 10**18 + 1):
        assert parse_duration(format_duration(duration_ns)) == duration_ns


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"use = " + b"9" * 5000, "cannot be read"),
        (b"use = " + b"[" * 100_000, "nested too deeply"),
        (b'use = "\xff"', "cannot be read"),
        (b"#" * (MEBIBYTE + 1), "has more than 1048576 octets"),
    ],
)
def test_a_file_of_contexts_is_one_error(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qsctl.cli.context.file import read_contexts

    (tmp_path / "config.toml").write_bytes(content)
    monkeypatch.setenv("QSCTL_CONFIG", str(tmp_path / "config.toml"))
    with pytest.raises(InvalidInput, match=message):
        read_contexts()


def test_a_document_that_is_nested_without_end_is_one_error(tmp_path: Path) -> None:
    from qsctl.eventlog.location import location
    from qsctl.report.document_report import document_page

    (tmp_path / "d.json").write_text('{"differences": ' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(InvalidInput, match="is not a JSON document"):
        document_page(location(str(tmp_path / "d.json")))


@pytest.mark.slow
def test_cells_of_csv_are_no_formulas(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "qsctl"]
    run([*command, "create-queue", "Orders", "--type", "DDS::String"], cwd=tmp_path, check=True)
    contents = ["=1+1", "+cmd", "-x", "@SUM", "-5", "+1.5", "plain", "\tx"]
    lines = "".join(json.dumps({"payload": each}) + "\n" for each in contents)
    done = run([*command, "import", "-", "Orders"], cwd=tmp_path, input=lines)
    assert done.returncode == ExitStatus.DONE, done.stderr
    shown = run([*command, "consume", "Orders", "--count", "0", "-o", "csv", "--columns", "payload"], cwd=tmp_path)
    assert shown.stdout.split("\n")[1:-1] == ["'=1+1", "'+cmd", "'-x", "'@SUM", "-5", "+1.5", "plain", "'\tx"]
