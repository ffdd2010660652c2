"""The reader of recorded arrivals from CSV or Parquet, with one clear error where the file is invalid.

The file is read by Arrow, whole columns at a time. Where Arrow refuses it, or a value is out of range, a CSV file is
read again line by line to find the line.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from qsctl.declared.problems import shown
from qsctl.errors import InvalidInput, NotFound
from qsctl.sim.arrivals.draw import TRACE_ROW
from qsctl.sim.kernel.records import SIZE_MASK
from qsctl.sim.scenario.rules.scenario import PARQUET_SUFFIXES, is_trace_file
from qsctl.sim.scenario.scenario import QUEUE_ORDER

REQUIRED: Final = ("time_ns", "size_bytes")
OPTIONAL: Final = ("topic_id", "client", "queue")
_NAMES: Final = {queue.value.lower(): index for index, queue in enumerate(QUEUE_ORDER)}
_NUMBER_CHARACTERS_MAX: Final = 100
_WHOLE_NUMBER: Final = re.compile(r"[ \t]*-?(0[xX][0-9a-fA-F]+|[0-9]+)[ \t]*")
_QUEUES_ALLOWED: Final = f"{', '.join(QUEUE_ORDER)}, or 0 to {len(QUEUE_ORDER) - 1}"
_COLUMNS: Final = f"Give {' and '.join(REQUIRED)}, and optionally {', '.join(OPTIONAL)}."


def read_trace(path: Path, client_count: int) -> npt.NDArray[Any]:
    """Return the rows of a trace as TRACE_ROW, in file order.

    `time_ns` counts from the traffic's start and must not decrease; `size_bytes` ≥ 1; `topic_id` ≥ 0 (default 0);
    `client` numbers the clients of the group from 0 (without the column every row goes to all of them); `queue` is a
    name such as D-1 or its index from 0, G-1 (default: the traffic's queue). Other columns are ignored.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file cannot be read, a column is missing or duplicate, or a value is not allowed; the message
            has the line (in a Parquet file the row), the column, the value and the allowed values.
    """
    if not is_trace_file(path):
        raise NotFound(f"{shown(str(path))}: there is no such trace file", remedy="Give a CSV or Parquet file.")
    table = _read_parquet(path) if path.suffix.lower() in PARQUET_SUFFIXES else _read_csv(path)
    rows = np.zeros(table.num_rows, TRACE_ROW)
    rows["time"] = _integers(path, table, "time_ns", 0, 2**61)
    rows["bytes"] = _integers(path, table, "size_bytes", 1, SIZE_MASK)
    rows["topic"] = _integers(path, table, "topic_id", 0, 2**31 - 1, absent=0)
    rows["client"] = _integers(path, table, "client", 0, client_count - 1, absent=-1)
    rows["queue"] = _queues(path, table)
    late = np.flatnonzero(np.diff(rows["time"]) < 0)
    if len(late):
        row = int(late[0]) + 1
        raise InvalidInput(
            f"{_place(path, row)}: time_ns {rows['time'][row]} is before the row above, {rows['time'][row - 1]}",
            remedy="Sort the trace by time_ns.",
        )
    return rows


def _read_csv(path: Path) -> pa.Table:
    names = _header(path)
    kinds = {name: pa.string() if name == "queue" else pa.int64() for name in (*REQUIRED, *OPTIONAL) if name in names}
    options = pa_csv.ConvertOptions(
        column_types=kinds, include_columns=list(kinds), null_values=[""], strings_can_be_null=True
    )
    try:
        return pa_csv.read_csv(path, convert_options=options)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if _explain(path, names) == 0:
            return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})
        _refuse(path, error)


def _header(path: Path) -> list[str]:
    """Return the names of the columns; raise InvalidInput where one that is read occurs twice."""
    try:
        with path.open("rb") as file:
            first, line = b"", 0
            while not first.strip(b"\r\n"):
                first, line = file.readline(1 << 20), line + 1
                if not first:
                    raise InvalidInput(f"{path}: the trace is empty", remedy=f"Begin with a header line. {_COLUMNS}")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}", remedy="Give a CSV or Parquet file.") from None
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}: line {line}: byte {error.start + 1} of the header, {first[error.start]:#04x}, is not UTF-8",
            remedy="Save the trace as UTF-8.",
        ) from None
    try:
        names = next(csv.reader([text.rstrip("\r\n").partition("\r")[0]]), [])
    except csv.Error as error:
        raise InvalidInput(f"{path}: line {line}: the header is not CSV: {error}", remedy=_COLUMNS) from None
    _check_names(path, f"line {line}: ", names)
    return names


def _check_names(path: Path, place: str, names: Sequence[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InvalidInput(
            f"{path}: {place}the trace has no column {' and '.join(missing)}; it has {shown(', '.join(names))}",
            remedy=_COLUMNS,
        )
    for name in (*REQUIRED, *OPTIONAL):
        columns = [str(number + 1) for number, each in enumerate(names) if each == name]
        if len(columns) > 1:
            raise InvalidInput(
                f"{path}: {place}the column {name} occurs {len(columns)} times: columns {' and '.join(columns)}",
                remedy="Leave one of them, or rename the others.",
            )


def _read_parquet(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_names(path, "", names)
            table = file.read(columns=[name for name in (*REQUIRED, *OPTIONAL) if name in names])
            table.validate(full=True)  # the library believes a file which of its shared values a row has
            return table
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        _refuse(path, error)


def _refuse(path: Path, error: Exception) -> NoReturn:
    first = shown(str(error).partition("\n")[0])
    raise InvalidInput(
        f"{path}: cannot be read as a trace: {first}", remedy="Give CSV with a header line, or Parquet."
    ) from error


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file below its header, each with the number of its line.

    Octets that are not UTF-8 are shown escaped.
    """
    with path.open(encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
        reader = csv.reader(file)
        begun = False
        for cells in reader:
            if not cells:
                continue
            if begun:
                yield reader.line_num, cells
            begun = True


def _explain(path: Path, names: Sequence[str]) -> int:
    """Raise InvalidInput for the first invalid cell of a CSV file; return the number of rows if all are valid."""
    count = 0
    try:
        for line, cells in _lines(path):
            count += 1
            if len(cells) != len(names):
                raise InvalidInput(
                    f"{path}: line {line} has {len(cells)} cells; the header has {len(names)} columns",
                    remedy="Correct that line.",
                )
            for name, cell in zip(names, cells, strict=True):
                if name in (*REQUIRED, *OPTIONAL) and name != "queue" and not _is_number(cell):
                    raise InvalidInput(
                        f"{path}: line {line}: {name} {shown(cell)!r} is not a whole number of at most 64 bits",
                        remedy="Write whole nanoseconds and bytes, in every row.",
                    )
                if name == "queue" and _queue_number(cell) < 0:
                    raise _no_queue(f"{path}: line {line}", cell)
    except csv.Error as error:
        raise InvalidInput(f"{path}: a line is not CSV: {error}", remedy="Give one row a line.") from None
    except OSError as error:
        _refuse(path, error)
    return count


def _is_number(cell: str) -> bool:
    if _WHOLE_NUMBER.fullmatch(cell) is None or len(cell) > _NUMBER_CHARACTERS_MAX:
        return False
    return -(2**63) <= int(cell, 16 if "x" in cell.lower() else 10) < 2**63


def _queue_number(cell: str) -> int:
    """Return the index of a queue from its name or its index as text, or -1 for any other text."""
    by_index = range(len(QUEUE_ORDER))
    return _NAMES.get(cell.lower(), next((index for index in by_index if cell == str(index)), -1))


def _no_queue(place: str, cell: object) -> InvalidInput:
    found = "is empty" if cell in (None, "") else f"{shown(str(cell))!r} is not one of {_QUEUES_ALLOWED}"
    return InvalidInput(f"{place}: the queue {found}", remedy="Correct that row.")


def _place(path: Path, row: int) -> str:
    """Return a text with the file and the line of a row, which counts from 0; for a Parquet file its number from 1."""
    if path.suffix.lower() not in PARQUET_SUFFIXES:
        with contextlib.suppress(csv.Error, OSError):
            for number, (line, _) in enumerate(_lines(path)):
                if number == row:
                    return f"{path}: line {line}"
    return f"{path}: row {row + 1}"


def _integers(
    path: Path, table: pa.Table, name: str, least: int, most: int, absent: int | None = None
) -> npt.NDArray[Any]:
    if name not in table.column_names:
        return np.full(table.num_rows, absent, np.int64)
    column = table.column(name)
    if column.null_count:
        row = _first(column.is_null().to_numpy())
        raise InvalidInput(f"{_place(path, row)}: {name} is empty", remedy="Give a value in every row.")
    if not pa.types.is_integer(column.type):
        raise InvalidInput(
            f"{path}: column {name} holds {column.type} values, not integers",
            remedy="Write whole nanoseconds and bytes.",
        )
    values = column.to_numpy()
    wrong = (values < least) | (values > most)
    if wrong.any():
        row = _first(wrong)
        raise InvalidInput(
            f"{_place(path, row)}: {name} {values[row]} is not between {least} and {most}", remedy="Correct that row."
        )
    return np.asarray(values, np.int64)


def _queues(path: Path, table: pa.Table) -> npt.NDArray[Any]:
    if "queue" not in table.column_names or pa.types.is_integer(table.column("queue").type):
        return _integers(path, table, "queue", 0, len(QUEUE_ORDER) - 1, absent=-1)
    column = table.column("queue")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InvalidInput(
            f"{path}: column queue holds {column.type} values, neither names nor integers",
            remedy=f"Write {_QUEUES_ALLOWED}.",
        )
    whole = column.cast(pa.string()).combine_chunks()
    coded = (whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole).dictionary_encode()
    try:
        names = coded.dictionary.to_pylist()
    except UnicodeDecodeError as error:
        _refuse(path, error)
    numbers = np.array([_queue_number(name) for name in names], np.int64)
    found = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values = np.append(numbers, -1)[found]
    if (values < 0).any():
        row = _first(values < 0)
        raise _no_queue(_place(path, row), None if found[row] < 0 else names[found[row]])
    return np.asarray(values, np.int64)


def _first(wrong: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(wrong)[0])
