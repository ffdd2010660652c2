"""Trace files: read as a plain reader of CSV reads them, or refused with `InvalidInput`.

The first byte of an input chooses the ending of the file's name and the number of clients; the rest is its content.
"""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

from qsctl.errors import InvalidInput
from qsctl.sim.arrivals.trace import read_trace
from qsctl.sim.kernel.records import SIZE_MASK
from qsctl.sim.scenario.scenario import QUEUE_ORDER
from tests.fuzz.target import MEMORY

DICTIONARY = (
    b"time_ns", b"size_bytes", b"topic_id", b"client", b"queue", b"D-1", b"g-1", b",", b"\n", b"\r\n", b'"', b"NaN",
    b"-1", b"0x10", b"9223372036854775807", b"9223372036854775808", b"1e9", b"\xef\xbb\xbf", b"PAR1",
)  # fmt: skip

_folder = tempfile.TemporaryDirectory(prefix="qsctl-fuzz-trace-", dir=MEMORY)
_QUEUES = {str(queue).lower(): index for index, queue in enumerate(QUEUE_ORDER)}


def one_input(data: bytes) -> None:
    kind, content = (data[0] if data else 0), data[1:]
    path = Path(_folder.name, "t.parquet" if kind & 1 else "t.csv")
    clients = 1 + (kind >> 1) % 4
    path.write_bytes(content)
    try:
        rows = read_trace(path, clients)
    except InvalidInput as error:
        assert str(path) in error.message
        assert error.remedy
        assert error.message.isprintable()
        assert len(error.message) < 2000
        return
    assert (rows["time"][1:] >= rows["time"][:-1]).all()
    assert ((rows["bytes"] >= 1) & (rows["bytes"] <= SIZE_MASK)).all()
    assert ((rows["client"] >= -1) & (rows["client"] < clients)).all()
    assert ((rows["queue"] >= -1) & (rows["queue"] < len(QUEUE_ORDER))).all()
    if not kind & 1:
        found = [tuple(map(int, row)) for row in rows[["time", "bytes", "topic", "client", "queue"]].tolist()]
        assert found == plainly_read(content)


def plainly_read(content: bytes) -> list[tuple[int, ...]]:
    """The rows of a CSV file that is a trace, cell by cell."""
    text = content.decode("utf-8-sig", errors="replace")
    lines = [cells for cells in csv.reader(io.StringIO(text, newline="")) if cells]
    names = lines[0]

    def number(text: str) -> int:
        return int(text, 16 if "x" in text.lower() else 10)

    def cell(cells: list[str], name: str, absent: int) -> int:
        if name not in names:
            return absent
        text = cells[names.index(name)]
        return _QUEUES[text.lower()] if name == "queue" and text.lower() in _QUEUES else number(text)

    return [
        (
            cell(cells, "time_ns", 0), cell(cells, "size_bytes", 0), cell(cells, "topic_id", 0),
            cell(cells, "client", -1), cell(cells, "queue", -1),
        )
        for cells in lines[1:]
    ]  # fmt: skip
