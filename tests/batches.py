"""What is in one turn of an engine, without the streams."""

from __future__ import annotations

from qsctl.core.ready import Ready
from qsctl.core.records import Record, one_by_one


def records_of(ready: Ready) -> list[Record]:
    """Return the records of every stream, stream by stream, and those of runs one by one."""
    return [record for batch in ready.batches for record in one_by_one(batch.records)]
