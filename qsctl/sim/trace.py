"""Recorded arrivals from CSV or Parquet: which columns there must be, and one clear error when they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from qsctl.errors import InvalidInput, NotFound
from qsctl.sim.kernel.records import SIZE_MASK
from qsctl.sim.kernel.streams import TRACE_ROW
from qsctl.sim.scenario import QUEUE_ORDER

REQUIRED: Final = ("time_ns", "size_bytes")
OPTIONAL: Final = ("topic_id", "client", "queue")
_NAMES: Final = {queue.value.lower(): index for index, queue in enumerate(QUEUE_ORDER)}


def read_trace(path: Path, client_count: int) -> npt.NDArray[Any]:
    """The rows of a trace as TRACE_ROW, in file order.

    `time_ns` counts from the traffic's start and must not decrease; `size_bytes` ≥ 1; `topic_id` ≥ 0 (default 0);
    `client` numbers the clients of the group from 0 (without the column every row goes to all of them); `queue` is a
    name such as D-1 or its index from 0, G-1 (default: the traffic's queue).

    Raises:
        NotFound: there is no such file.
        InvalidInput: it cannot be read, lacks a column, or a value is out of range: named with its row.
    """
    table = _read(path)
    missing = [name for name in REQUIRED if name not in table.column_names]
    if missing:
        raise InvalidInput(
            f"{path}: the trace has no column {' and '.join(missing)}; it has {', '.join(table.column_names)}",
            remedy=f"Give {' and '.join(REQUIRED)}, and optionally {', '.join(OPTIONAL)}.",
        )
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
            f"{path}: row {row + 1}: time_ns {rows['time'][row]} is before the row above, {rows['time'][row - 1]}",
            remedy="Sort the trace by time_ns.",
        )
    return rows


def _read(path: Path) -> pa.Table:
    if not path.is_file():
        raise NotFound(f"{path}: there is no such trace file", remedy="Give a CSV or Parquet file.")
    try:
        return pq.read_table(path) if path.suffix.lower() in {".parquet", ".pq"} else pa_csv.read_csv(path)
    except (pa.ArrowInvalid, OSError) as error:
        first = str(error).splitlines()[0]
        raise InvalidInput(
            f"{path}: cannot be read as a trace: {first}", remedy="Give CSV with a header line, or Parquet."
        ) from error


def _integers(
    path: Path, table: pa.Table, name: str, least: int, most: int, absent: int | None = None
) -> npt.NDArray[Any]:
    if name not in table.column_names:
        return np.full(table.num_rows, absent, np.int64)
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InvalidInput(f"{path}: row {row + 1}: {name} is empty", remedy="Give a value in every row.")
    if not pa.types.is_integer(column.type):
        raise InvalidInput(
            f"{path}: column {name} holds {column.type} values, not integers",
            remedy="Write whole nanoseconds and bytes.",
        )
    values = column.to_numpy().astype(np.int64)
    wrong = np.flatnonzero((values < least) | (values > most))
    if len(wrong):
        row = int(wrong[0])
        raise InvalidInput(
            f"{path}: row {row + 1}: {name} {values[row]} is not between {least} and {most}",
            remedy="Correct that row.",
        )
    return np.asarray(values, np.int64)


def _queues(path: Path, table: pa.Table) -> npt.NDArray[Any]:
    if "queue" not in table.column_names or pa.types.is_integer(table.column("queue").type):
        return _integers(path, table, "queue", 0, len(QUEUE_ORDER) - 1, absent=-1)
    names = table.column("queue").to_pylist()
    for row, name in enumerate(names):
        if str(name).lower() not in _NAMES:
            raise InvalidInput(
                f"{path}: row {row + 1}: queue {name!r} is not one of {', '.join(QUEUE_ORDER)}",
                remedy="Correct that row.",
            )
    return np.array([_NAMES[str(name).lower()] for name in names], np.int64)
