"""The tables that a recording of a service has beside `messages`, `counters` and `events`: what a replay needs.

They are written at level `messages` and above, as `arrivals/replication=0/part-*.parquet` and so on. Times are integer
nanoseconds since the recording began, negative for what was before. A queue is named by its full name,
`<domain participant>/<shared subscriber>/<queue>`, in these tables; in `messages` and `counters` as in a simulated run.

Steps: `step` numbers what happened, over all tables, in the order in which the service did it. Live, hundreds of
messages come at one instant, so only steps put arrivals, answers and peers in order. Steps are of one process each:
those of two queues can be compared where one process serves both; they have gaps.

Samples: `producer` is a number of `peers`, given out once for each writer GUID, and `sequence_number` the sample's in
that writer: together the identity. A dead letter is a sample of its own. With sampling all rows of a sample are there
or none, see `Recording.sample_share` of `run.json`; `counters`, `peers` and `commands` are always whole.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa


class Origin(StrEnum):
    """The way in which a sample came to a queue."""

    PRODUCER = "producer"
    DEAD_LETTER = "dead_letter"
    """From a queue of the same service that could not deliver it: no input of a replay."""
    HELD = "held"
    """It was in the queue when the recording began."""
    OUTSIDE = "outside"
    """It waited outside the full queue when the recording began."""


class ArrivalAnswer(StrEnum):
    """The answer of a queue to a sample that reached it."""

    ENQUEUED = "enqueued"
    BOUNCED = "bounced"
    DUPLICATE = "duplicate"
    NONE = "none"
    """It waited outside when the recording ended."""


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
    """A second one of the same consumer changes at most its window."""
    CONSUMER_AVAILABILITY = "consumer_availability"
    CONSUMER_LEFT = "consumer_left"
    PRODUCER_SEEN = "producer_seen"
    """The first sample of a writer: it has a number from here on."""
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


NAME: Final = pa.dictionary(pa.int32(), pa.string())

ARRIVALS: Final = pa.schema(
    [
        pa.field("run_id", NAME, nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("at_ns", pa.int64(), nullable=False),
        pa.field("queue", NAME, nullable=False),
        pa.field("producer", pa.int32(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("origin", NAME, nullable=False),
        pa.field("size_bytes", pa.int32(), nullable=False),
        pa.field("lifespan_ns", pa.int64()),
        pa.field("address", NAME),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field("redelivered", pa.bool_(), nullable=False),
        pa.field("answer", NAME, nullable=False),
        pa.field("answered_ns", pa.int64()),
        pa.field("answered_step", pa.int64()),
        pa.field("reason", NAME),
    ]
)
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
        pa.field("run_id", NAME, nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("queue", NAME, nullable=False),
        pa.field("producer", pa.int32(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("attempt", pa.int32(), nullable=False),
        pa.field("redelivered", pa.bool_(), nullable=False),
        pa.field("consumer", pa.int32(), nullable=False),
        pa.field("sent_ns", pa.int64(), nullable=False),
        pa.field("answer", NAME, nullable=False),
        pa.field("answered_ns", pa.int64()),
        pa.field("answered_step", pa.int64()),
        pa.field("late_ns", pa.int64()),
        pa.field("late_step", pa.int64()),
        pa.field("late_retired", pa.bool_(), nullable=False),
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
        pa.field("run_id", NAME, nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("at_ns", pa.int64(), nullable=False),
        pa.field("happening", NAME, nullable=False),
        pa.field("peer", pa.int32(), nullable=False),
        pa.field("guid", pa.string(), nullable=False),
        pa.field("queue", NAME),
        pa.field("participant", NAME),
        pa.field("topic", NAME),
        pa.field("address", NAME),
        pa.field("unacked_threshold", pa.int32()),
        pa.field("reception_enabled", pa.bool_()),
        pa.field("hands_back", pa.bool_(), nullable=False),
    ]
)
"""One row a happening, see `PeerHappening`; `peer` is the number by which the other tables name who has this `guid`.

One GUID has one number, whatever it is: a producer and a consumer, and a consumer of two queues. Consumers that were
there when the recording began have joined at -1. `queue`: of consumers; `participant` and `topic`: of a producer that
left. `address`: the requester whose replies this consumer takes (`ConsumerJoined.source_guid`), as 32 hexadecimal
digits. `unacked_threshold`, `reception_enabled`: what the peer reported of its window, null where it left them to the
queue; of one that was there, what is in force. `hands_back`: it left in good order.
"""

COMMANDS: Final = pa.schema(
    [
        pa.field("run_id", NAME, nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("at_ns", pa.int64(), nullable=False),
        pa.field("command", NAME, nullable=False),
        pa.field("resource", pa.string(), nullable=False),
        pa.field("body", pa.string(), nullable=False),
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
