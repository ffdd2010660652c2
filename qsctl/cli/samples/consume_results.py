"""The results of `qsctl consume`: samples, and the answer to each once it is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.output.payloads import PAYLOAD_HELP, ContentReader, shown_in
from qsctl.cli.output.results import Column, PartialResult, Plain, Row, TableBlock
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.core.messages import Delivery


class ConsumerAnswer(StrEnum):
    """The answer of the consumer."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    NONE = "none"


@dataclass(frozen=True)
class Consumed(PartialResult):
    """Samples in the order in which they came: all, or the next of them."""

    deliveries: Sequence[Delivery]
    acknowledgment: ConsumerAnswer
    reader: ContentReader = ContentReader()
    is_complete: bool = False

    field_help: ClassVar[Mapping[str, str]] = {
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        "identity": "WRITER_GUID:SEQUENCE_NUMBER",
        "attempt": "1 on the first delivery",
        "redelivered": "a consumer may have processed it already",
        "last": "marked as the last one in the queue (mark_last_undelivered_sample)",
        "source_guid": "GUID that a reply is addressed to",
        "related_source_guid": "of a reply: GUID of its requester",
        "related_identity": "of a reply: the request",
        "acknowledgment": "accepted, rejected or none",
        "size_bytes": "size of the content",
        **PAYLOAD_HELP,
    }
    row_fields: ClassVar[tuple[str, ...]] = tuple(field_help)

    @property
    def exit_status(self) -> ExitStatus:
        """NO when there was no sample."""
        return ExitStatus.DONE if self.deliveries else ExitStatus.NO

    @property
    def is_last(self) -> bool:
        """Return whether as many samples were received as were wanted."""
        return self.is_complete

    def rows(self) -> list[Row]:
        """One row a sample."""
        return self._rows

    def table(self) -> TableBlock:
        """One line a sample, long contents cut."""
        rows = [{**row, "payload": shown_in(row)} for row in self._rows]
        columns = [
            Column("identity", "Identity"),
            Column("attempt", "Attempt", "right"),
            Column("redelivered", "Redelivered"),
            Column("acknowledgment", "Acknowledgment"),
            Column("size_bytes", "Bytes", "right"),
            Column("payload", "Content"),
        ]
        return TableBlock(columns, rows, empty="No samples.")

    @cached_property
    def _rows(self) -> list[Row]:
        return [self._row(delivery) for delivery in self.deliveries]

    def _row(self, delivery: Delivery) -> dict[str, Plain]:
        from qsctl.core.messages import SampleFlag

        payload, encoding = self.reader.for_origin(delivery.dead_letter_from).read(delivery.payload)
        return {
            "queue_name": delivery.queue,
            "identity": str(delivery.original_identity),
            "attempt": delivery.attempt,
            "redelivered": bool(delivery.flags & SampleFlag.REDELIVERED),
            "last": bool(delivery.flags & SampleFlag.LAST_SHARED_READER_QUEUE),
            "source_guid": delivery.source_guid.hex(),
            "related_source_guid": delivery.related_source_guid.hex(),
            "related_identity": str(delivery.related_identity),
            "acknowledgment": self.acknowledgment.value,
            "size_bytes": len(delivery.payload or b""),
            "payload": payload,
            "payload_encoding": encoding,
        }
