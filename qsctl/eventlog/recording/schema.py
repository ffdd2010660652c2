"""The tables that a recording has beside `messages`, `counters` and `events`: the data that a replay needs.

They are written at level `messages` and above, as `arrivals/replication=0/part-*.parquet` and so on. Times are integer
nanoseconds since the recording began, negative for what was before. A queue is named by its full name,
`<domain participant>/<shared subscriber>/<queue>`, in these tables; in `messages` and `counters` as in a simulated run.

Steps: `step` numbers events and inputs, over all tables, in the order in which the service processed them. Live,
hundreds of messages have the same instant, so only steps order arrivals, answers and peers. Steps are of one process
each: those of two queues can be compared where one process serves both; they have gaps.

Samples: `producer` is a number of `peers`, given out once for each writer GUID, and `sequence_number` the sample's in
that writer: together the identity. A dead letter is a sample of its own. With sampling all rows of a sample are there
or none, see `Recording.sample_share` of `run.json`; `counters`, `peers` and `commands` are always whole.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from qsctl.eventlog.described import NAME, column, duration, instant
from qsctl.eventlog.schema import RUN_ID


class Origin(StrEnum):
    """The way in which a sample came to a queue."""

    PRODUCER = "producer"
    DEAD_LETTER = "dead_letter"
    """Dead-lettered by another queue of the same service; a replay does not use it as an input."""
    HELD = "held"
    """The sample was in the queue when the recording began."""
    OUTSIDE = "outside"
    """The sample was in the reader cache of the full queue when the recording began."""


class ArrivalAnswer(StrEnum):
    """The answer of a queue to a sample that reached it."""

    ENQUEUED = "enqueued"
    BOUNCED = "bounced"
    DUPLICATE = "duplicate"
    NONE = "none"
    """The sample was still in the reader cache when the recording ended."""


class DeliveryAnswer(StrEnum):
    """The end of a delivery."""

    ACKNOWLEDGED = "acknowledged"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    CONSUMER_LEFT = "consumer_left"
    """The consumer vanished: a failed attempt."""
    HANDED_BACK = "handed_back"
    """The consumer gave the sample back, or left in good order: no attempt is counted."""
    NONE = "none"
    """The sample expired or was flushed while the consumer held it, or the recording ended."""


class PeerHappening(StrEnum):
    """An action of a peer."""

    CONSUMER_JOINED = "consumer_joined"
    """A consumer matched; a second row of the same consumer changes at most its window."""
    CONSUMER_AVAILABILITY = "consumer_availability"
    CONSUMER_LEFT = "consumer_left"
    PRODUCER_SEEN = "producer_seen"
    """A writer's first sample arrived, and the writer got its number."""
    PRODUCER_LEFT = "producer_left"


class CommandKind(StrEnum):
    """A change by an administrator."""

    CREATE_QUEUE = "create_queue"
    UPDATE_QUEUE = "update_queue"
    CREATE_SUBSCRIBER = "create_subscriber"
    DELETE_QUEUE = "delete_queue"
    DELETE_SUBSCRIBER = "delete_subscriber"
    FLUSH_QUEUE = "flush_queue"
    SHUTDOWN = "shutdown"


def _words(kind: type[StrEnum]) -> str:
    return ", ".join(f"`{each}`" for each in kind)


_STEP: Final = column(
    "step", pa.int64(), "Number of what happened, over all tables, in the order in which the service did it; with gaps."
)
_QUEUE: Final = column("queue", NAME, "Full name of the queue: participant, shared subscriber and queue.")
_PRODUCER: Final = column("producer", pa.int32(), "Number of the producer in the table `peers`.")
_SEQUENCE_NUMBER: Final = column(
    "sequence_number", pa.int64(), "Sequence number of the sample in its producer: together its identity."
)

ARRIVALS: Final = pa.schema(
    [
        RUN_ID,
        _STEP,
        instant("at_ns", "When the sample reached the queue; of one that was held before, when it was enqueued."),
        _QUEUE,
        _PRODUCER,
        _SEQUENCE_NUMBER,
        column("origin", NAME, f"How it came to the queue: {_words(Origin)}."),
        column("size_bytes", pa.int32(), "Size of the sample.", unit="bytes"),
        duration("lifespan_ns", "Lifespan that its producer gave; of one that was held, the rest; null: none.",
                 nullable=True),
        column("address", NAME, "Requester that a reply is for, as 32 hexadecimal digits; null: any consumer.",
               nullable=True),
        column("attempts", pa.int32(), "Deliveries before the recording began.", unit="deliveries"),
        column("redelivered", pa.bool_(), "Whether it had the redelivered flag before the recording began."),
        column("answer", NAME, f"Answer of the queue: {_words(ArrivalAnswer)}."),
        instant("answered_ns", "When it was enqueued or refused; null: not until the end.", nullable=True),
        column("answered_step", pa.int64(), "Step of the answer; null as `answered_ns`.", nullable=True),
        column("reason", NAME, "Reason of a refusal; null: not refused.", nullable=True),
    ]
)  # fmt: skip
"""One row a sample that reached a queue, in the order of the answers; those that waited for room come late.

`at_ns`: when it reached the queue; of one that was `held` when the recording began, when it was enqueued (negative).
`lifespan_ns`: its producer's value, null for none; of one that was `held` or `outside`, the time from `at_ns` to its
expiry, by any limit. `address`: the requester that a reply is for, as 32 hexadecimal digits; null: any consumer.
`attempts`, `redelivered`: of one that was held, those before the recording; else 0 and false. One that was held and
with a consumer has a row in `deliveries` with a negative `sent_ns` besides, and that delivery is among its attempts.
`answer`: see `ArrivalAnswer`; of one that was held `enqueued`. `answered_ns`: when it was enqueued, refused, or found
to be there already. `reason`: of one that was refused, see `core.events.BounceReason`. Whether a producer receives the
answer is the queue's setting `app_ack_sample_to_producer`, in `service.json`. The largest number of answers that a
producer awaits (its window) is unknown to a service.
"""

DELIVERIES: Final = pa.schema(
    [
        RUN_ID,
        _STEP,
        _QUEUE,
        _PRODUCER,
        _SEQUENCE_NUMBER,
        column("attempt", pa.int32(), "Number of the delivery of this sample, from 1."),
        column("redelivered", pa.bool_(), "Whether it was sent with the redelivered flag."),
        column("consumer", pa.int32(), "Number of the consumer in the table `peers`."),
        instant("sent_ns", "When it was sent; negative: before the recording began."),
        column("answer", NAME, f"End of the delivery: {_words(DeliveryAnswer)}."),
        instant("answered_ns", "When it ended; null: not until the end.", nullable=True),
        column("answered_step", pa.int64(), "Step of the end; null as `answered_ns`.", nullable=True),
        instant("late_ns", "When the consumer answered after the end of the delivery; null: never.", nullable=True),
        column("late_step", pa.int64(), "Step of the late answer; null as `late_ns`.", nullable=True),
        column("late_retired", pa.bool_(), "Whether the late answer was positive and retired the sample."),
    ]
)
"""One row a delivery, about in the order in which they ended.

`attempt` counts from 1, `consumer` is a number of `peers`, `step` that of its sending. `answered_ns`: when it ended;
null where `answer` is `none` and the recording ended before it. `late_ns`: when the consumer answered after the end of
the delivery, with any answer; null: never, or long after (`LATE_ROWS_MAX`). `late_retired`: that answer was positive
and retired the sample. A row with `late_ns` is written when that answer is known, or else at the end.
"""

PEERS: Final = pa.schema(
    [
        RUN_ID,
        _STEP,
        instant("at_ns", "When it happened; of consumers that were there when the recording began, -1."),
        column("happening", NAME, f"What happened: {_words(PeerHappening)}."),
        column("peer", pa.int32(), "Number by which the other tables name the producer or consumer with this `guid`."),
        column("guid", pa.string(), "GUID of the peer's writer or reader, as 32 hexadecimal digits."),
        column("queue", NAME, "Full name of a consumer's queue; null: of a producer.", nullable=True),
        column("participant", NAME, "Participant of a producer that left; null: other happenings.", nullable=True),
        column("topic", NAME, "Topic of a producer that left; null: other happenings.", nullable=True),
        column("address", NAME, "Requester whose replies a consumer takes, as 32 hexadecimal digits; null: none.",
               nullable=True),
        column("unacked_threshold", pa.int32(), "Unacknowledged samples that the consumer accepts; null: the queue's.",
               unit="samples", nullable=True),
        column("reception_enabled", pa.bool_(), "Whether the consumer accepts samples; null: the queue's.",
               nullable=True),
        column("hands_back", pa.bool_(), "Whether it left in good order and gave its samples back."),
    ]
)  # fmt: skip
"""One row a happening, see `PeerHappening`; `peer` is the number by which the other tables name who has this `guid`.

One GUID has one number, whatever it is: a producer and a consumer, and a consumer of two queues. Consumers that were
there when the recording began have joined at -1. `queue`: of consumers; `participant` and `topic`: of a producer that
left. `address`: the requester whose replies this consumer takes (`ConsumerJoined.source_guid`), as 32 hexadecimal
digits. `unacked_threshold`, `reception_enabled`: what the peer reported of its window, null where it left them to the
queue; of one that was there, what is in force. `hands_back`: it left in good order.
"""

COMMANDS: Final = pa.schema(
    [
        RUN_ID,
        _STEP,
        instant("at_ns", "When the service carried it out or refused it."),
        column("command", NAME, f"Kind of the command: {_words(CommandKind)}."),
        column("resource", pa.string(), "Identifier of what is changed, deleted or flushed, or created in."),
        column("body", pa.string(), "Settings as JSON, of a flush the selector."),
    ]
)
"""One row a command that changes something, see `CommandKind`, whether it was carried out or refused.

`resource` is the identifier [QS 5.2.1] of the queue or subscriber that is changed, deleted or flushed, or of what the
new one is created in. `body`: of CREATE and UPDATE the settings (`SharedReaderQueueSettings`,
`SharedSubscriberSettings`) as JSON, which is exact; of a flush the selector.
"""

REPLAY_TABLES: Final[dict[str, pa.Schema]] = {
    "arrivals": ARRIVALS,
    "deliveries": DELIVERIES,
    "peers": PEERS,
    "commands": COMMANDS,
}
