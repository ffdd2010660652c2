"""The results of `qsctl get`. Field names are those of the wire types [QS 5.4.4 to 5.4.6]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.administer.answers import SERVICE_HELP, service_column
from qsctl.cli.administer.replication_results import REPLICATION_HELP, replication_fields
from qsctl.cli.output.payloads import PAYLOAD_HELP, ContentReader, shown_in
from qsctl.cli.output.results import (
    Block,
    Column,
    LazyRows,
    ListResult,
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

_CONSUMER_COLUMNS: Final = (
    Column("consumer_guid", "Consumer"),
    Column("outstanding_count", "Outstanding", "right"),
    Column("unacked_threshold", "Threshold", "right"),
    Column("reception_enabled", "Enabled"),
    Column("source_guid", "Requester", rank=1),
)


@dataclass(frozen=True)
class Statuses(Result):
    """The status of queues; `detailed` shows a person every field."""

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
        "consumer_count": "consumers that are there now",
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
        """Flat: of the statistics the mean."""
        return self._rows(_mean)

    def blocks(self) -> list[Block]:
        """Return what operators look at first, or everything."""
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
            *service_column(rows),
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
        return [TableBlock(columns, rows, empty="No queues yet: `qsctl create-queue NAME` makes one.")]

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
class QueueDataList(Result):
    """Queues and what they are for."""

    queues: tuple[FromService[QueueData], ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        "topic_name": "the topic that producers write",
        "resource": "its resource identifier",
        "type_name": "the type of its samples",
        "is_dead_letter": "whether it holds the subscriber's undeliverable samples",
        **SERVICE_HELP,
    }

    def rows(self) -> list[Row]:
        """One row a queue."""
        names = [name for name in self.field_help if name != "service"]
        return [{**fields_of(queue, *names), "service": service} for service, queue in self.queues]

    def document(self) -> Plain:
        """Return an object with the queues."""
        return {"queues": self.rows()}

    def blocks(self) -> list[Block]:
        """Return a table of queues."""
        rows = self.rows()
        columns = [
            *service_column(rows),
            Column("queue_name", "Queue"),
            Column("topic_name", "Topic"),
            Column("type_name", "Type"),
            Column("is_dead_letter", "Dead letters"),
            Column("resource", "Resource"),
        ]
        return [TableBlock(columns, rows, empty="No queues yet: `qsctl create-queue NAME` makes one.")]


@dataclass(frozen=True)
class ServiceHolds(QueueDataList):
    """Whole services: their containers too, each with the service that has it."""

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
        """Return the queues, then where more can be made."""
        rows: list[Row] = [
            {"service": service, "resource": name} for service, name in (*self.participants, *self.subscribers)
        ]
        columns = [*service_column(rows), Column("resource", "Participants and subscribers")]
        return [*super().blocks(), TableBlock(columns, rows)]


def holdings(found: Sequence[FromService[ServiceData]]) -> ServiceHolds:
    """Return what services host, by service."""
    from qsctl.client.administration import FromService

    return ServiceHolds(
        queues=tuple(FromService(service, queue) for service, data in found for queue in data.queues),
        subscribers=tuple((service, name) for service, data in found for name in data.subscribers),
        participants=tuple((service, name) for service, data in found for name in data.participants),
        services=tuple(service for service, _ in found),
    )


@dataclass(frozen=True)
class Messages(ListResult):
    """Samples as they lie in their queue."""

    messages: tuple[FromService[MessageData], ...]
    reader: ContentReader = ContentReader()

    field_help: ClassVar[Mapping[str, str]] = {
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        "position": "place in the queue, never reused",
        "status": "UNDELIVERED, SENT or DELIVERED",
        "identity": "WRITER_GUID:SEQUENCE_NUMBER",
        "size_bytes": "size of the content",
        "enqueued_at": "instant of entering, UTC",
        "enqueued_at_ns": "the same in nanoseconds since 1970",
        "attempts": "deliveries that failed",
        "redelivered": "a consumer may have processed it already",
        "dead_letter_from": "in a dead-letter queue: TOPIC@SUBSCRIBER it came from",
        "dead_letter_reason": "in a dead-letter queue: LIFESPAN or MAX_RETRIES",
        **PAYLOAD_HELP,
        **SERVICE_HELP,
    }

    def rows(self) -> LazyRows[FromService[MessageData]]:
        """One row a sample."""
        return LazyRows(self.messages, list(self.field_help), lambda found: self._row(*found))

    def blocks(self) -> list[Block]:
        """One line a sample, long contents cut."""
        rows: list[Row] = []
        for service, message in self.messages:
            row = self._row(service, message)
            came_from = f"{message.dead_letter_from} ({message.dead_letter_reason})" if message.dead_letter_from else ""
            rows.append({**row, "payload": shown_in(row), "dead_letter_from": came_from})
        columns = [
            *service_column(rows),
            Column("position", "Position", "right", short="Pos"),
            Column("status", "Status"),
            Column("identity", "Identity", rank=2),
            Column("attempts", "Attempts", "right", short="Att", rank=1),
            Column("redelivered", "Redelivered", short="Redel", rank=1),
            Column("size_bytes", "Bytes", "right"),
            Column("enqueued_at", "Enqueued", rank=1),
            Column("payload", "Content"),
        ]
        if any(message.dead_letter_from for _, message in self.messages):
            columns.insert(-1, Column("dead_letter_from", "Dead letter from"))
        return [TableBlock(columns, rows, empty="No samples.")]

    def _row(self, service: str, message: MessageData) -> dict[str, Plain]:
        payload, encoding = self.reader.for_origin(message.dead_letter_from).read(message.payload)
        return {
            **fields_of(message, "queue_name", "position"),
            "status": message.status.name,
            "identity": str(message.identity),
            "size_bytes": message.size_bytes,
            "enqueued_at": instant_text(message.enqueued_at_ns),
            "enqueued_at_ns": message.enqueued_at_ns,
            **fields_of(message, "attempts", "redelivered", "dead_letter_from", "dead_letter_reason"),
            "payload": payload,
            "payload_encoding": encoding,
            "service": service,
        }


def instant_text(instant_ns: int) -> str:
    """Return an instant since 1970 as ISO 8601 in UTC, to the microsecond; empty when no calendar has it."""
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
