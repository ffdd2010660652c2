"""What `qsctl consume` returns: the samples, and how they were settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.payloads import PAYLOAD_HELP, ContentReader, shown_in
from qsctl.cli.results import Block, Column, Plain, Result, Row, TableBlock
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.core.messages import Delivery


class Settlement(StrEnum):
    """What the consumer answered."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    NONE = "none"


@dataclass(frozen=True)
class Consumed(Result):
    """Samples in the order in which they came."""

    deliveries: tuple[Delivery, ...]
    settlement: Settlement
    reader: ContentReader = ContentReader()

    field_help: ClassVar[Mapping[str, str]] = {
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        "identity": "WRITER_GUID:SEQUENCE_NUMBER",
        "attempt": "1 on the first delivery",
        "redelivered": "a consumer may have processed it already",
        "last": "marked as the last one in the queue (mark_last_undelivered_sample)",
        "source_guid": "whom a reply goes to",
        "related_source_guid": "of a reply: whom it is for",
        "related_identity": "of a reply: the request",
        "settled": "accepted, rejected or none",
        "size_bytes": "size of the content",
        **PAYLOAD_HELP,
    }

    @property
    def exit_status(self) -> ExitStatus:
        """NO when there was no sample."""
        return ExitStatus.DONE if self.deliveries else ExitStatus.NO

    def document(self) -> Plain:
        """A list with one object a sample."""
        return self.rows()

    def rows(self) -> list[Row]:
        """One row a sample."""
        return [self._row(delivery) for delivery in self.deliveries]

    def blocks(self) -> list[Block]:
        """One line a sample, long contents cut."""
        rows = [{**row, "payload": shown_in(row)} for row in self.rows()]
        columns = [
            Column("identity", "Identity"),
            Column("attempt", "Attempt", "right"),
            Column("redelivered", "Redelivered"),
            Column("settled", "Settled"),
            Column("size_bytes", "Bytes", "right"),
            Column("payload", "Content"),
        ]
        return [TableBlock(columns, rows, empty="No samples.")]

    def _row(self, delivery: Delivery) -> dict[str, Plain]:
        from qsctl.core.messages import SampleFlag

        payload, encoding = self.reader.read(delivery.payload)
        return {
            "queue_name": delivery.queue,
            "identity": str(delivery.identity),
            "attempt": delivery.attempt,
            "redelivered": bool(delivery.flags & SampleFlag.REDELIVERED),
            "last": bool(delivery.flags & SampleFlag.LAST_SHARED_READER_QUEUE),
            "source_guid": delivery.source_guid.hex(),
            "related_source_guid": delivery.related_source_guid.hex(),
            "related_identity": str(delivery.related_identity),
            "settled": self.settlement.value,
            "size_bytes": len(delivery.payload or b""),
            "payload": payload,
            "payload_encoding": encoding,
        }
