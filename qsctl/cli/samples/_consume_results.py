"""The results of `qsctl consume`: samples, each with the answer that the consumer gives once it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.payloads import ContentReader, PayloadEncodingField, PayloadField, shown
from qsctl.cli.output.results import PartialResult, TableBlock
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.core.messages import Delivery


class ConsumerAnswer(StrEnum):
    """A consumer's answer to a delivery."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    NONE = "none"


@dataclass(slots=True)  # not frozen: there may be millions, and those take longer to make
class ConsumedRow:
    """A row: a sample as its consumer received it."""

    queue_name: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE"]
    identity: Annotated[str, "WRITER_GUID:SEQUENCE_NUMBER", Heading("Identity")]
    attempt: Annotated[int, "1 on the first delivery", Heading("Attempt")]
    redelivered: Annotated[bool, "a consumer may have processed it already", Heading("Redelivered")]
    last: Annotated[bool, "marked as the last one in the queue (mark_last_undelivered_sample)"]
    source_guid: Annotated[str, "GUID that a reply is addressed to"]
    related_source_guid: Annotated[str, "of a reply: GUID of its requester"]
    related_identity: Annotated[str, "of a reply: the request"]
    acknowledgment: Annotated[str, "accepted, rejected or none", Heading("Acknowledgment")]
    size_bytes: Annotated[int, "size of the content", Heading("Bytes")]
    payload: PayloadField
    payload_encoding: PayloadEncodingField


@dataclass(frozen=True)
class Consumed(DeclaredRows, PartialResult, rows=ConsumedRow):
    """Received samples in order: all of them, or one part of them."""

    deliveries: Sequence[Delivery]
    acknowledgment: ConsumerAnswer
    reader: ContentReader = ContentReader()
    is_complete: bool = False

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if there was no sample, else DONE."""
        return ExitStatus.DONE if self.deliveries else ExitStatus.NO

    @property
    def is_last(self) -> bool:
        """Return whether the requested number of samples was received."""
        return self.is_complete

    def items(self) -> Sequence[ConsumedRow]:
        """Return the samples; their contents are converted once."""
        return self._items

    def table(self) -> TableBlock:
        """Return a table with one line per sample; long contents are cut."""
        lines = [self._item(each) for each in self.deliveries]
        for line in lines:
            line.payload = shown(line.payload, line.payload_encoding)
        return table_of(ConsumedRow, lines, empty="No samples.")

    @cached_property
    def _items(self) -> Sequence[ConsumedRow]:
        return [self._item(delivery) for delivery in self.deliveries]

    def _item(self, delivery: Delivery) -> ConsumedRow:
        from qsctl.core.messages import SampleFlag

        payload, encoding = self.reader.for_origin(delivery.dead_letter_from).read(delivery.payload)
        return ConsumedRow(
            queue_name=delivery.queue,
            identity=str(delivery.original_identity),
            attempt=delivery.attempt,
            redelivered=bool(delivery.flags & SampleFlag.REDELIVERED),
            last=bool(delivery.flags & SampleFlag.LAST_SHARED_READER_QUEUE),
            source_guid=delivery.source_guid.hex(),
            related_source_guid=delivery.related_source_guid.hex(),
            related_identity=str(delivery.related_identity),
            acknowledgment=self.acknowledgment.value,
            size_bytes=len(delivery.payload or b""),
            payload=payload,
            payload_encoding=encoding,
        )
