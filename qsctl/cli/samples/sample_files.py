"""Files of samples: JSON lines, or Parquet with the same fields and the content as octets.

Decides: that a file is there whole or not at all, and that one is read whole before any sample of it is used.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from qsctl.cli.input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.samples.sample_lines import SampleLine, sample_of_fields, sample_of_line
from qsctl.endings import TemporaryFile, TemporaryFolder
from qsctl.errors import InvalidInput, UsageError
from qsctl.identity import GUID_SIZE_BYTES, Guid, SampleIdentity

if TYPE_CHECKING:
    from qsctl.config.types import TypeLibrary
    from qsctl.core.inserted_sample import InsertedSample

READ_BYTES: Final = 1024 * 1024
_TEXTS: Final = (
    "queue_name", "identity", "source_guid", "related_source_guid", "related_identity", "related_reader_guid",
    "dead_letter_from", "dead_letter_reason", "dead_letter_incarnation", "incarnation",
)  # fmt: skip
_NUMBERS: Final = ("position", "enqueued_at_ns", "expires_at_ns", "attempts", "flags", "dead_letter_position")


Fields: TypeAlias = tuple[Mapping[str, object], bytes]
"""A sample as the fields of a line, and its content as octets."""


class FileFormat(StrEnum):
    """How samples are written in a file."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def format_of(file: Path, chosen: FileFormat | None) -> FileFormat:
    """Return the format that was chosen, or the one that the file's name says: Parquet, else JSON lines."""
    if chosen is not None:
        return chosen
    return FileFormat.PARQUET if file.suffix.lower() in (".parquet", ".pq") else FileFormat.JSONL


@contextlib.contextmanager
def new_file(file: Path, *, force: bool) -> Iterator[Path]:
    """A file to write that takes its name at the end of the block, synced; nothing of it is left when that fails.

    Raises:
        UsageError: a file of that name exists, or the directory cannot be written.
    """
    if file.exists() and not force:
        raise UsageError(f"{file} exists already", remedy="Choose another name, or overwrite it with --force.")
    try:
        temporary = TemporaryFile(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}", remedy="Name another directory.") from None
    with temporary as part:
        yield part
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        if force:
            part.replace(file)
        else:
            try:
                os.link(part, file)
            except FileExistsError:
                raise UsageError(f"{file} exists already", remedy="Choose another name, or --force.") from None


class JsonLinesWriter:
    """Writes samples as JSON lines."""

    def __init__(self, file: Path) -> None:
        self._stream = file.open("wb")
        self._encoder = msgspec.json.Encoder()

    def write(self, samples: Sequence[Fields]) -> None:
        """Write samples."""
        self._stream.write(self._encoder.encode_lines([fields for fields, _ in samples]))

    def close(self) -> None:
        """End the file."""
        self._stream.close()


class ParquetWriter:
    """Writes samples as rows of a Parquet file: the same fields, the content as octets."""

    def __init__(self, file: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        self._arrow = pyarrow
        self._schema = pyarrow.schema(
            [
                *((name, pyarrow.string()) for name in _TEXTS),
                *((name, pyarrow.int64()) for name in _NUMBERS),
                ("redelivered", pyarrow.bool_()),
                ("payload", pyarrow.binary()),
            ]
        )
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, samples: Sequence[Fields]) -> None:
        """Write samples."""
        rows = [{name: fields[name] for name in self._schema.names} | {"payload": octets} for fields, octets in samples]
        self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))

    def close(self) -> None:
        """End the file."""
        self._writer.close()


@contextlib.contextmanager
def source_file(file: Path) -> Iterator[Path]:
    """The file to read twice: itself, or what standard input had.

    Raises:
        NotFound, InvalidInput: see `input_files.reading`.
    """
    if not is_standard_input(file):
        with reading(file), file.open("rb"):
            pass
        yield file
        return
    with TemporaryFolder() as folder:
        copy = folder / "samples"
        with reading(STANDARD_INPUT), copy.open("wb") as stream:
            while part := sys.stdin.buffer.read(READ_BYTES):
                stream.write(part)
        yield copy


def read_samples(
    file: Path, name: str, form: FileFormat, types: TypeLibrary | None, type_name: str
) -> Iterator[InsertedSample]:
    """Yield the samples of a file, in order. One without an identity gets one of the file's content and its place.

    Args:
        file: what is read.
        name: what errors call it.
        form: how it is written.
        types: definitions, for contents in JSON.
        type_name: the type of the queue that the samples are for.

    Raises:
        InvalidInput: a line is wrong; names the file, the line, the field and what it must be.
    """
    writer_guid = _guid_of(file)
    if form is FileFormat.JSONL:
        with file.open("rb") as stream:
            for number, text in enumerate(stream, 1):
                if text.strip():
                    unnamed = SampleIdentity(writer_guid, number)
                    yield sample_of_line(text, f"{name}, line {number}", unnamed, types, type_name)
        return
    for number, row in enumerate(_rows(file, name), 1):
        place, payload = f"{name}, row {number}", row.pop("payload", None)
        if not isinstance(payload, bytes):
            raise InvalidInput(f"{place}: payload is {payload!r}"[:200], remedy="It is a column of octets.")
        try:
            line = msgspec.convert({"payload": None, **_without_nulls(row)}, _Row)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{place}: {error}", remedy="`--format-help` has the fields.") from None
        yield sample_of_fields(line, payload, place, SampleIdentity(writer_guid, number))


class _Row(SampleLine, frozen=True):
    """A row of a Parquet file, whose content stands apart."""

    payload: None = None  # type: ignore[assignment]


def _rows(file: Path, name: str) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        opened = pyarrow.parquet.ParquetFile(file)
        for batch in opened.iter_batches(batch_size=1000):
            yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise InvalidInput(f"{name} is no Parquet file: {error}", remedy="Give --format jsonl if it is one.") from None


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _guid_of(file: Path) -> Guid:
    """The same for the same content: a file that is imported again brings the same samples."""
    digest = blake2b(digest_size=GUID_SIZE_BYTES)
    with file.open("rb") as stream:
        while part := stream.read(READ_BYTES):
            digest.update(part)
    return Guid(digest.digest())
