"""The results of `qsctl get`. Field names are those of the wire types [QS 5.4.4 to 5.4.6]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from qsctl.cli._staleness import STALENESS_HELP, Staleness, staleness_fields
from qsctl.cli.administer.answers import SERVICE_HELP, AnsweringService
from qsctl.cli.administer.replication_results import REPLICATION_HELP, replication_fields
from qsctl.cli.output.declared import DeclaredRows, Heading, documented, read, row_of, table_of
from qsctl.cli.output.payloads import ContentReader, PayloadEncodingField, PayloadField, shown
from qsctl.cli.output.results import (
    Block,
    Column,
    LazyRows,
    Plain,
    Result,
    Row,
    TableBlock,
    fields_of,
    plain,
)
from qsctl.core.statistics.status import CONSUMERS_MAX

if TYPE_CHECKING:
    from qsctl.client.administration import FromService
    from qsctl.core.admin.reply import MessageData, QueueData, ServiceData
    from qsctl.core.statistics.status import SharedReaderQueueStatus, StatisticVariable

_COUNTERS: Final = {
    "received_message_count": "samples that producers wrote",
    "sent_message_count": "deliveries to consumers, the repeated ones too",
    "acknowledged_message_count": "samples that a consumer took with success",
    "failed_delivery_message_count": "samples given up after the last attempt",
    "late_acknowledgment_message_count": "acknowledgments after the response timeout",
    "bounced_message_count": "samples refused, not stored",
    "redelivered_message_count": "deliveries after the first",
    "expired_message_count": "samples whose lifespan elapsed",
    "timeout_message_count": "deliveries without an answer in time",
    "high_watermark_count": "times above the high watermark",
    "low_watermark_count": "times below the low watermark",
    "queue_full_count": "times the queue became full",
}
_ADDITIONAL: Final = {
    "restored_message_count": "samples found in the store when the service started",
    "duplicate_message_count": "samples that the queue had already: acknowledged and dropped",
    "flushed_message_count": "samples removed by a command",
}
_VARIABLES: Final = {
    "sending_latency": "milliseconds from enqueued to first sent",
    "enqueue_throughput": "samples a second that entered",
    "dequeue_throughput": "samples a second that left for good",
    "sending_throughput": "samples a second that were sent",
}

_NO_QUEUES: Final = "No queues yet: `qsctl create-queue NAME` makes one."
_CONSUMER_COLUMNS: Final = (
    Column("consumer_guid", "Consumer"),
    Column("outstanding_count", "Outstanding", "right"),
    Column("unacked_threshold", "Threshold", "right"),
    Column("reception_enabled", "Enabled"),
    Column("source_guid", "Requester", rank=1),
)


@dataclass(frozen=True)
class Statuses(Result):
    """The status of queues; with `detailed`, a table has every field instead of the most important ones."""

    statuses: tuple[FromService[SharedReaderQueueStatus], ...]
    detailed: bool = False

    field_help: ClassVar[Mapping[str, str]] = {
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        "current_message_count": "samples held now",
        "current_unacknowledged_message_count": "held and not acknowledged",
        "current_acknowledged_message_count": "acknowledged and not yet removed",
        "current_sent_message_count": "with a consumer now",
        "current_waiting_message_count": "outside the full queue now, not acknowledged",
        "current_undeliverable_message_count": "held because the dead-letter queue has no room",
        "consumer_count": "consumers that are matched now",
        **{
            name: f"{meaning}, since the service started"
            for name, meaning in (*_COUNTERS.items(), *_ADDITIONAL.items())
        },
        **{f"{name}_change": f"{meaning}, since last read" for name, meaning in _COUNTERS.items()},
        **{
            name: f"{meaning}: period_ms count mean minimum maximum std_dev, over the publication period and each "
            "window that is on (csv and jsonl: the mean over the publication period)"
            for name, meaning in _VARIABLES.items()
        },
        **REPLICATION_HELP,
        **SERVICE_HELP,
        "consumers": f"-o json and yaml of one queue: up to {CONSUMERS_MAX} consumers, those with the most outstanding "
        "samples, each with consumer_guid, source_guid (of a requester), outstanding_count, unacked_threshold "
        "(-1: none), reception_enabled",
    }

    def document(self) -> Plain:
        """Return a list with one object a queue, statistics nested."""
        return [
            {**row, "consumers": [fields_of(each) for each in status.consumers]} if self.detailed else row
            for row, (_, status) in zip(self._rows(plain), self.statuses, strict=True)
        ]

    def rows(self) -> list[Row]:
        """Return one flat row per queue; of each statistic its mean."""
        return self._rows(_mean)

    def blocks(self) -> list[Block]:
        """Return a table of the most important figures; with `detailed`, a table of all fields for each queue."""
        rows = self.rows()
        if self.detailed:
            columns = [Column("field", "Field"), Column("value", "Value", "right")]
            blocks: list[Block] = []
            for row, (_, status) in zip(rows, self.statuses, strict=True):
                blocks.append(TableBlock(columns, [{"field": name, "value": value} for name, value in row.items()]))
                if status.consumers:
                    blocks.append(TableBlock(_CONSUMER_COLUMNS, [fields_of(each) for each in status.consumers]))
            return blocks
        columns = [
            *([Column("service", "Service")] if len({row["service"] for row in rows}) > 1 else []),
            Column("queue_name", "Queue"),
            Column("current_message_count", "Held", "right"),
            Column("current_sent_message_count", "With consumers", "right", short="Sent", rank=1),
            Column("received_message_count", "Received", "right", short="Recv", rank=3),
            Column("acknowledged_message_count", "Acknowledged", "right", short="Ackd", rank=3),
            Column("redelivered_message_count", "Redelivered", "right", short="Redel", rank=2),
            Column("failed_delivery_message_count", "Failed", "right", short="Fail", rank=1),
            Column("expired_message_count", "Expired", "right", short="Exp", rank=2),
            Column("bounced_message_count", "Bounced", "right", short="Bnc", rank=2),
            Column("enqueue_throughput", "In/s", "right"),
            Column("dequeue_throughput", "Out/s", "right"),
        ]
        if any(row["role"] for row in rows):
            at = next(at for at, column in enumerate(columns) if column.field == "current_message_count")
            columns.insert(at, Column("role", "Role"))
        return [TableBlock(columns, rows, empty=_NO_QUEUES)]

    def _rows(self, shown: Callable[[StatisticVariable], Plain]) -> list[Row]:
        return [
            {
                **_counts(status),
                **{name: shown(getattr(status, name)) for name in _VARIABLES},
                **replication_fields(status),
                "service": service,
            }
            for service, status in self.statuses
        ]


@dataclass(frozen=True)
class QueueRow:
    """A row: a queue with its topic and type."""

    queue_name: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE", Heading("Queue")]
    topic_name: Annotated[str, "the topic that producers write", Heading("Topic")]
    resource: Annotated[str, "its resource identifier", Heading("Resource")]
    type_name: Annotated[str, "the type of its samples", Heading("Type")]
    is_dead_letter: Annotated[bool, "whether it holds the subscriber's undeliverable samples", Heading("Dead letters")]
    service: AnsweringService


@dataclass(frozen=True)
class QueueDataList(DeclaredRows, rows=QueueRow):
    """The hosted queues, with topics and types."""

    queues: tuple[FromService[QueueData], ...]

    def items(self) -> Sequence[QueueRow]:
        """Return the queues."""
        return [read(QueueRow, queue, service=service) for service, queue in self.queues]

    def document(self) -> Plain:
        """Return an object with the queues."""
        return {"queues": self.rows()}

    def blocks(self) -> list[Block]:
        """Return a table of queues."""
        order = ("service", "queue_name", "topic_name", "type_name", "is_dead_letter", "resource")
        return [table_of(QueueRow, self.items(), empty=_NO_QUEUES, order=order)]


@dataclass(frozen=True)
class ContainerRow:
    """A row: a participant or subscriber, in which queues can be created."""

    service: AnsweringService
    resource: Annotated[str, Heading("Participants and subscribers")]


@dataclass(frozen=True)
class ServiceHolds(QueueDataList):
    """The content of whole services: queues and their containers, each with the service that hosts it."""

    subscribers: tuple[tuple[str, str], ...]
    participants: tuple[tuple[str, str], ...]
    services: tuple[str, ...]

    def document(self) -> Plain:
        """Return an object with queues and containers."""
        return {
            "queues": self.rows(),
            "subscribers": list(dict.fromkeys(name for _, name in self.subscribers)),
            "participants": list(dict.fromkeys(name for _, name in self.participants)),
            "services": list(self.services),
        }

    def blocks(self) -> list[Block]:
        """Return a table of the queues, then one of the containers."""
        containers = [ContainerRow(*each) for each in (*self.participants, *self.subscribers)]
        return [*super().blocks(), table_of(ContainerRow, containers)]


def holdings(found: Sequence[FromService[ServiceData]]) -> ServiceHolds:
    """Return the content of services."""
    from qsctl.client.administration import FromService

    return ServiceHolds(
        queues=tuple(FromService(service, queue) for service, data in found for queue in data.queues),
        subscribers=tuple((service, name) for service, data in found for name in data.subscribers),
        participants=tuple((service, name) for service, data in found for name in data.participants),
        services=tuple(service for service, _ in found),
    )


@dataclass(slots=True)  # not frozen: there may be millions, and those take longer to make
class MessageRow:
    """A row: a sample in its queue."""

    queue_name: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE"]
    position: Annotated[int, "place in the queue, never reused", Heading("Position", short="Pos")]
    status: Annotated[str, "UNDELIVERED, SENT or DELIVERED", Heading("Status")]
    identity: Annotated[str, "WRITER_GUID:SEQUENCE_NUMBER", Heading("Identity", rank=2)]
    size_bytes: Annotated[int, "size of the content", Heading("Bytes")]
    enqueued_at: Annotated[str, "instant of entering, UTC", Heading("Enqueued", rank=1)]
    enqueued_at_ns: Annotated[int, "the same in nanoseconds since 1970"]
    attempts: Annotated[int, "deliveries that failed", Heading("Attempts", short="Att", rank=1)]
    redelivered: Annotated[
        bool, "a consumer may have processed it already", Heading("Redelivered", short="Redel", rank=1)
    ]
    dead_letter_from: Annotated[
        str, "in a dead-letter queue: TOPIC@SUBSCRIBER it came from", Heading("Dead letter from", when=any)
    ]
    dead_letter_reason: Annotated[str, "in a dead-letter queue: LIFESPAN or MAX_RETRIES"]
    payload: PayloadField
    payload_encoding: PayloadEncodingField
    service: AnsweringService


@dataclass(frozen=True)
class Messages(DeclaredRows, rows=MessageRow):
    """Samples in their queues, not delivered."""

    messages: tuple[FromService[MessageData], ...]
    reader: ContentReader = ContentReader()
    staleness: Staleness | None = None
    """None: only members that have a master were asked."""

    document_help: ClassVar[Mapping[str, str]] = STALENESS_HELP

    def rows(self) -> LazyRows[FromService[MessageData]]:
        """Return one row per sample, made when it is read."""
        stale = staleness_fields(self.staleness)
        names = [*documented(MessageRow), *stale]
        return LazyRows(self.messages, names, lambda found: {**row_of(MessageRow, self._row(*found)), **stale})

    def blocks(self) -> list[Block]:
        """Return a table with one line per sample; long contents are cut."""
        lines = [self._row(*each) for each in self.messages]
        for line in lines:
            line.payload = shown(line.payload, line.payload_encoding)
            if line.dead_letter_from:
                line.dead_letter_from += f" ({line.dead_letter_reason})"
        order = (
            "service", "position", "status", "identity", "attempts", "redelivered", "size_bytes", "enqueued_at",
            "dead_letter_from", "payload",
        )  # fmt: skip
        return [table_of(MessageRow, lines, empty="No samples.", order=order)]

    def _row(self, service: str, message: MessageData) -> MessageRow:
        payload, encoding = self.reader.for_origin(message.dead_letter_from).read(message.payload)
        return read(
            MessageRow, message, status=message.status.name, identity=str(message.identity), payload=payload,
            payload_encoding=encoding, enqueued_at=instant_text(message.enqueued_at_ns), service=service,
        )  # fmt: skip


def instant_text(instant_ns: int) -> str:
    """Return an instant (nanoseconds since 1970) in ISO 8601, UTC, to the microsecond; empty if out of range."""
    try:
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant_ns // 1000)
    except OverflowError:
        return ""
    return instant.isoformat().replace("+00:00", "Z")


def _counts(status: SharedReaderQueueStatus) -> dict[str, Plain]:
    return {
        "queue_name": status.queue_name,
        **{name: getattr(status, name) for name in status.__struct_fields__ if name.startswith("current_")},
        "consumer_count": status.consumer_count,
        **{name: getattr(status.total, name) for name in _COUNTERS},
        **{name: getattr(status.additional, name) for name in _ADDITIONAL},
        **{f"{name}_change": getattr(status.change, name) for name in _COUNTERS},
    }


def _mean(variable: StatisticVariable) -> float:
    return variable.publication_period_metrics.mean
