"""What is in one turn of an engine, without the streams and indexes."""

from __future__ import annotations

from qsctl.core.messages import Outbound
from qsctl.core.ready import Ready
from qsctl.core.records import Record


def records_of(ready: Ready) -> list[Record]:
    """Return the records of every stream, stream by stream."""
    return [record for batch in ready.batches for record in batch.records]


def messages_of(ready: Ready) -> list[Outbound]:
    """Return the messages in their order."""
    return [message for _, _, message in ready.messages]
