"""Files of samples: JSON lines, or Parquet with the same fields and the content as octets.

Decides that a file is written completely or not at all, and that a file is read completely before its samples are used.
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

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.samples._sample_lines import SampleLine, sample_of_fields, sample_of_line
from qsctl.endings import TemporaryFile, TemporaryFolder
from qsctl.errors import InvalidInput, UsageError
from qsctl.identity import GUID_SIZE_BYTES, Guid, SampleIdentity

if TYPE_CHECKING:
    from qsctl.config.sample_types.types import TypeLibrary
    from qsctl.core.inserted_sample import InsertedSample

READ_BYTES: Final = 1024 * 1024

SAMPLE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The largest content of a sample: what a running service accepts."""

LINE_BYTES_MAX: Final = 4 * SAMPLE_BYTES_MAX
"""The longest line of a file: the largest content in base64, or as text with some escapes."""

EXPANSION_MAX: Final = 1000
EXPANDED_BYTES_MIN: Final = 2 * SAMPLE_BYTES_MAX
"""Bounds on a file's expansion: a multiple of its size, but at least this minimum.

Samples of programs typically compress to a tenth or a hundredth of their size.
"""

BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 16 * 1024 * 1024
"""Octets of a Parquet file's rows in memory at once, which limits the rows of a batch."""
ROW_BYTES_BESIDE: Final = 64 * 1024
"""Largest size of a row's other fields beside its content."""

_TEXTS: Final = (
    "queue_name", "identity", "source_guid", "related_source_guid", "related_identity", "related_reader_guid",
    "dead_letter_from", "dead_letter_reason", "dead_letter_incarnation", "incarnation",
)  # fmt: skip
_NUMBERS: Final = ("position", "enqueued_at_ns", "expires_at_ns", "attempts", "flags", "dead_letter_position")


_OF_OCTETS: Final = ("payload", *_TEXTS)
_NAMES: Final = frozenset((*_TEXTS, *_NUMBERS, "redelivered", "payload"))

Fields: TypeAlias = tuple[Mapping[str, object], bytes]
"""A sample as the fields of a line, and its content as octets."""


class FileFormat(StrEnum):
    """The format of a file of samples."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def format_of(file: Path, chosen: FileFormat | None) -> FileFormat:
    """Return the chosen format, else the one of the file's suffix: Parquet, or JSON lines by default."""
    if chosen is not None:
        return chosen
    return FileFormat.PARQUET if file.suffix.lower() in (".parquet", ".pq") else FileFormat.JSONL


@contextlib.contextmanager
def new_file(file: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary file that gets this name, synced, at the end of the block; on failure it is removed.

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
    """A writer of samples as JSON lines."""

    def __init__(self, file: Path) -> None:
        self._stream = file.open("wb")
        self._encoder = msgspec.json.Encoder()

    def write(self, samples: Sequence[Fields]) -> None:
        """Write samples as lines."""
        self._stream.write(self._encoder.encode_lines([fields for fields, _ in samples]))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class ParquetWriter:
    """A writer of samples as rows of a Parquet file: the fields of a line, with the content as octets."""

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
        """Write samples as rows."""
        rows = [{name: fields[name] for name in self._schema.names} | {"payload": octets} for fields, octets in samples]
        self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))

    def close(self) -> None:
        """Write the Parquet footer, and close the file."""
        self._writer.close()


@contextlib.contextmanager
def source_file(file: Path) -> Iterator[Path]:
    """Yield a file that can be read twice: the given one, or a copy of standard input.

    Raises:
        NotFound, InvalidInput: it does not exist, or cannot be read.
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
    """Yield the samples of a file in order; a missing identity is derived from the file's content.

    Args:
        file: the file to read.
        name: the file's name in errors.
        form: the file's format.
        types: definitions for contents in JSON.
        type_name: the type of the queue that the samples are for.

    Raises:
        InvalidInput: a line is wrong; names the file, the line, the field and the allowed values.
    """
    writer_guid = _guid_of(file)
    if form is FileFormat.JSONL:
        with file.open("rb") as stream:
            number = 0
            while text := stream.readline(LINE_BYTES_MAX + 1):
                number += 1
                if len(text) > LINE_BYTES_MAX:
                    raise InvalidInput(
                        f"{name}, line {number} is longer than {LINE_BYTES_MAX} octets",
                        remedy=f"A sample has {SAMPLE_BYTES_MAX} octets at most.",
                    )
                if text.strip():
                    unnamed = SampleIdentity(writer_guid, number)
                    yield sample_of_line(text, f"{name}, line {number}", unnamed, types, type_name)
        return
    for number, row in enumerate(_rows(file, name), 1):
        place, payload = f"{name}, row {number}", row.pop("payload", None)
        if not isinstance(payload, bytes):
            raise InvalidInput(f"{place}: payload is {payload!r}"[:200], remedy="It is a column of octets.")
        if len(payload) > SAMPLE_BYTES_MAX:
            raise InvalidInput(
                f"{place}: payload has {len(payload)} octets", remedy=f"Allowed: {SAMPLE_BYTES_MAX} at most."
            )
        try:
            line = msgspec.convert({"payload": None, **_without_nulls(row)}, _ParquetRow)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{place}: {error}", remedy="`--format-help` has the fields.") from None
        yield sample_of_fields(line, payload, place, SampleIdentity(writer_guid, number))


class _ParquetRow(SampleLine, frozen=True):
    """A row of a Parquet file, whose content is a separate column."""

    payload: None = None  # type: ignore[assignment]


def _rows(file: Path, name: str) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        # Equal values are held once: a thousand rows may expand to a thousand times a large content.
        there = set(pyarrow.parquet.read_schema(file).names)
        opened = pyarrow.parquet.ParquetFile(file, read_dictionary=[each for each in _OF_OCTETS if each in there])
        expansion = _FileExpansion(file.stat().st_size, name)
        metadata = opened.metadata
        row_bytes = 1
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            expansion.require(group.total_byte_size)
            row_bytes = max(row_bytes, group.total_byte_size // max(1, group.num_rows))
        if row_bytes > SAMPLE_BYTES_MAX + ROW_BYTES_BESIDE:
            raise InvalidInput(
                f"{name} has rows of {row_bytes} octets",
                remedy=f"Allowed: contents of {SAMPLE_BYTES_MAX} octets at most.",
            )
        for batch in opened.iter_batches(batch_size=max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes))):
            batch.validate(full=True)  # the library does not check a file's indexes into its dictionaries
            yield from _rows_of(batch, expansion)
    except (pyarrow.ArrowException, OSError, OverflowError, ValueError, KeyError) as error:
        # A name may not be UTF-8, and the file's two schemas may have different columns.
        raise InvalidInput(
            f"{name} is not a Parquet file: {error}", remedy="Give --format jsonl if it is one."
        ) from None


class _FileExpansion:
    """The octets that were decoded from a file; a file made to exhaust memory is refused.

    Args:
        size_bytes: the file's size.
        name: its name in errors.
    """

    def __init__(self, size_bytes: int, name: str) -> None:
        self._most = max(EXPANDED_BYTES_MIN, size_bytes * EXPANSION_MAX)
        self._name = name
        self._read = 0

    def require(self, size_bytes: int) -> None:
        """Check that a file of this size may expand to the given number of octets.

        Raises:
            InvalidInput: it may not.
        """
        if size_bytes > self._most:
            raise InvalidInput(
                f"{self._name} stands for more than {self._most} octets",
                remedy=f"Allowed: {EXPANSION_MAX} times its size. If that is right, import its samples as JSON lines.",
            )

    def count(self, size_bytes: int) -> None:
        """Add octets that were decoded from the file; raises as `require`."""
        self._read += size_bytes
        self.require(self._read)


def _shared_values(column: Any) -> Iterator[Any]:
    """Yield the values of a dictionary-encoded column, equal ones as one object."""
    values = column.dictionary.to_pylist()
    for at in column.indices.to_pylist():
        yield None if at is None else values[at]


def _rows_of(batch: Any, expansion: _FileExpansion) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch, with equal dictionary-encoded values as one object."""
    columns: dict[str, Iterator[Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in _NAMES:
            continue  # a column of another program
        if hasattr(column, "dictionary"):
            columns[name] = _shared_values(column)
        else:
            expansion.require(column.nbytes)
            columns[name] = iter(column.to_pylist())
    for _ in range(batch.num_rows):
        row = {name: next(column) for name, column in columns.items()}
        expansion.count(sum(len(value) for value in row.values() if isinstance(value, str | bytes)))
        yield row


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _guid_of(file: Path) -> Guid:
    """Return a GUID derived from a file's content, so that a repeated import has the same identities."""
    digest = blake2b(digest_size=GUID_SIZE_BYTES)
    with file.open("rb") as stream:
        while part := stream.read(READ_BYTES):
            digest.update(part)
    return Guid(digest.digest())
