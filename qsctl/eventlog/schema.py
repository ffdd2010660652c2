"""The Arrow schemas of the tables in a run folder, which simulator and service write, and Spark and people read.

A run folder holds `run.json` (what was run, with which seed, whether it is complete), and Parquet files
partitioned by replication: `messages/replication=N/part-*.parquet` at level `messages` and above,
`counters/replication=N/part-*.parquet` always, `events/replication=N/…` at level `events`; a table of the level exists
without rows, too. The tables of `names` are beside them. Times are nanoseconds: instants are integers since the run
began; durations have a type of their own in the files (`described.stored`) and are integers inside qsctl, null where it
never happened. Every field has its description, which the page `reference-event-log` and
`schemas/qsctl_event_log.json` show.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from qsctl.eventlog.described import NAME, column, duration, instant
from qsctl.eventlog.outcomes import LOSSES, column_of
from qsctl.eventlog.outcomes import Outcome as Outcome


class LogLevel(StrEnum):
    """The level of detail that a run writes; each level includes the one before."""

    COUNTERS = "counters"
    MESSAGES = "messages"
    EVENTS = "events"


RUN_ID: Final = column(
    "run_id",
    NAME,
    "Identifier of the run: of a simulation the same wherever the same scenario runs with the same seed.",
)
CLIENT_ID: Final = column(
    "client_id", pa.int32(), "Number of the client or queue of the broker, whose name is in the table `clients`."
)

MESSAGES: Final = pa.schema(
    [
        RUN_ID,
        CLIENT_ID,
        column("queue", NAME, "Queue that the message came to: a priority queue of its client, or the queue's name."),
        column(
            "topic_id", pa.int32(),
            "Number of the topic, of the class of work, or of the producer: the table `topics` has its name.",
        ),
        column("size_bytes", pa.int32(), "Size of the message.", unit="bytes"),
        column("work_units", pa.int32(), "Work units of 2,048 bytes that it counts for, from 1.", unit="work units"),
        instant("enqueued_ns", "Arrival at the broker or service: the durations of the row begin here."),
        duration(
            "enter_ns", "From the arrival to entering the queue, of a returned message its last entry; null: it never "
            "entered.", nullable=True,
        ),
        duration(
            "wait_ns", "From the arrival to leaving the queue: by being sent where it was delivered, by its loss "
            "otherwise. Null while it is in the queue; of a row `held` that was sent, to its sending.", nullable=True,
        ),
        duration("send_ns", "From the arrival to the last byte leaving the port; null: not sent.", nullable=True),
        duration(
            "acknowledge_ns", "From the arrival to the acknowledgment; null: not acknowledged.", nullable=True
        ),
        column(
            "outcome", NAME, f"What became of the message: one of {', '.join(f'`{each}`' for each in Outcome)}. "
            "`held`: in its queue at the end; `waiting`: accepted and not in its queue at the end.",
        ),
        column(
            "discard_indication", pa.bool_(), "Whether the message carries the mark that earlier ones were discarded."
        ),
        column(
            "attempts", pa.int32(), "Deliveries begun, the first one included; of those before the end of the warm-up "
            "one at most.", unit="deliveries",
        ),
    ]
)  # fmt: skip
"""One row a message, of each client about in the order in which their fate was known; those of the warm-up too.

The warm-up restarts statistics, not the log: a message that came before its end and left after it is counted as
delivered or lost, so it must have its row. A count leaves out what happened before `warm_up_ns` of `run.json`.
`enqueued_ns` is the arrival at the broker. `enter_ns`: from it to entering the queue: 0 for most, longer for a
guaranteed message that waited at its endpoint (of one that came back its last entry), null where it never entered, as
for `waiting` ones. `wait_ns`: from the arrival to leaving the queue, for a delivered message by being sent, for a lost
or elided one by that; of a row `held` only where the message was sent and waits in G-1 for its acknowledgment.
`send_ns`: to its last byte leaving the port. `acknowledge_ns`: to its acknowledgment.
`attempts`: deliveries begun, the first one included (entering G-1 from the endpoint, being sent to a consumer); 0
before the first. Statistics restart at the end of the warm-up, attempts too: of those before, one is kept at most. So
the sum of `greatest(attempts - 1, 0)` over all rows, but those of messages that left their queue before the end of the
warm-up, is `redelivered_messages` of the counters, to the message; rows `held` and `waiting` belong to it.
Of a model `queue` (a broker's queue) a wait ends when work on the message begins first, and `topic_id` is the number of
its class; a dead letter has a row of its own in the queue of dead letters, since it became one.
`replication` (int32) comes from the folder's name.
"""

_BUCKETS: Final = (
    "Bucket b holds durations from b ns to b ns where b < 256, else (128 + b % 128) × 2^(b div 128 - 1) ns and the "
    "2^(b div 128 - 1) - 1 ns after it."
)
_MESSAGES_OF: Final = {
    Outcome.DISCARDED: "lost by the queue's limit",
    Outcome.NOT_CONNECTED: "lost because their client was not connected when they came",
    Outcome.DISCONNECTED: "lost in a queue whose client disconnected",
    Outcome.SPOOL_REFUSED: "refused by a full or congested endpoint",
    Outcome.INGRESS_REFUSED: "refused at ingress: the publisher's part of the buffers was full",
    Outcome.TOO_BIG: "refused at ingress: larger than the broker's largest message",
    Outcome.EXPIRED: "lost because their time to live was over",
    Outcome.DEAD: "lost because their delivery attempts were spent",
    Outcome.REJECTED: "lost because the application rejected them",
}


def _count(name: str, of_what: str, *, unit: str = "messages") -> pa.Field:
    return column(name, pa.int64(), of_what, unit=unit)


def _histogram(name: str, of_what: str) -> tuple[pa.Field, pa.Field]:
    """Return the two columns of a sparse histogram: buckets and counts."""
    return (
        column(
            f"{name}_bucket", pa.list_(pa.int32()), f"Buckets of the histogram of {of_what}, ascending. {_BUCKETS}"
        ),
        column(
            f"{name}_count", pa.list_(pa.int64()), f"Messages in each bucket of `{name}_bucket`, in the same order.",
            unit="messages",
        ),
    )  # fmt: skip


COUNTERS: Final = pa.schema(
    [
        RUN_ID,
        CLIENT_ID,
        column("client", NAME, "Name of the client or queue of the broker."),
        column("queue", NAME, "Queue of this client."),
        _count("arrived_messages", "Messages published to the queue, the refused ones included."),
        _count("delivered_messages", "Messages delivered; where they are acknowledged, the acknowledged ones."),
        *(_count(column_of(each), f"Messages {_MESSAGES_OF[each]}.") for each in LOSSES),
        _count("elided_messages", "Messages replaced by a newer one of their topic: no loss."),
        _count("evicted_messages", "Messages discarded from G-1 that came again from their endpoint: no loss."),
        _count(
            "redelivered_messages", "Deliveries after the first one of each message, counted when they begin.",
            unit="deliveries",
        ),
        _count("discard_indications", "Messages sent with the mark that earlier ones were discarded."),
        _count("delivered_bytes", "Bytes of the delivered messages.", unit="bytes"),
        _count("length_messages", "Messages in the queue at the end."),
        _count("length_work_units", "Work units in the queue at the end.", unit="work units"),
        _count("unacknowledged_messages", "Messages of `length_messages` that were sent and not acknowledged."),
        _count("waiting_messages", "Messages that were accepted and not in the queue at the end."),
        _count("high_water_mark_work_units", "Largest depth of the queue.", unit="work units"),
        _count("max_depth_work_units", "Limit of the queue's depth at the end.", unit="work units"),
        instant("first_discard_ns", "First loss that is a discard by the broker; null: none.", nullable=True),
        duration("wait_sum_ns", "Sum of the waits (`wait_ns` of the messages) of the delivered messages."),
        duration("wait_max_ns", "Longest wait of a delivered message; 0 where none was delivered."),
        duration("observed_ns", "Time that was counted: from the end of the warm-up to the end."),
        *_histogram("histogram", "the waits of the delivered messages"),
        column(
            "done_messages", pa.int64(), "Delivered messages with an acknowledgment; null: nothing acknowledges here.",
            unit="messages", nullable=True,
        ),
        duration("done_sum_ns", "Sum of their times to the acknowledgment; null as `done_messages`.", nullable=True),
        duration("done_max_ns", "Longest of their times to the acknowledgment; null as those.", nullable=True),
        *_histogram("done", "the times to the acknowledgment"),
        column(
            "unfinished_messages", pa.int64(), "Messages not acknowledged at the end; null as `done_messages`.",
            unit="messages", nullable=True,
        ),
        duration("unfinished_max_ns", "Longest age of an unfinished message; null as those.", nullable=True),
        *_histogram("unfinished", "the ages of the unfinished messages at the end"),
    ]
)  # fmt: skip
"""One row a client and queue: the model's own counters after warm-up.

`redelivered_messages` counts deliveries after a message's first, each when it is begun, whatever becomes of the
message: one that came three times counts two. In the egress models a delivery is entering G-1 from the endpoint; in
ours it is being sent to a consumer, after a rejection too, which does not set the redelivered flag.
`arrived_messages` are those published to the queue, the ones refused at ingress or at their endpoint included; what
became of them is in `delivered_messages`, `elided_messages`, a column a loss (`outcomes.LOSSES`), `length_messages` and
`waiting_messages`: without a warm-up these add up to it. `first_discard_ns` is that of the first of
`outcomes.DISCARDS`. `evicted_messages` were discarded from G-1 and came again from their endpoint: no loss.
`length_messages` and `length_work_units` are of rows `held`; of them `unacknowledged_messages` were sent and G-1 holds
them until they are acknowledged. A guaranteed message counts as delivered when it is acknowledged, once and by its last
sending, if that was after the end of the warm-up; its wait ends, like that of every message, when it enters the TCP
transmit queue. One that was sent again after an absence or an eviction is in `redelivered_messages` besides. (With
`GuaranteedOverflow.REDELIVER` one that was sent counts at the end of the run without an acknowledgment.)
The histogram is sparse: bucket i of `wait_ns` holds count i, see `bucket_of`; `observed_ns` is horizon less warm-up.
Times to done are those to the acknowledgment (`acknowledge_ns` of the messages): `done_…` are of the delivered messages
that have one, `unfinished_…` of those that have none when the run ends, with how long ago they came: delivered, `held`
and `waiting` ones. They are null, and their histograms empty, where nothing acknowledges a message: direct messages of
Solace, the queues inside an integration engine, and runs of earlier versions, whose files have none of the columns.
"""

SINCE_DONE: Final = (
    "done_messages", "done_sum_ns", "done_max_ns", "done_bucket", "done_count", "unfinished_messages",
    "unfinished_max_ns", "unfinished_bucket", "unfinished_count",
)  # fmt: skip
"""Columns of the counters that earlier versions did not write."""

SINCE_REJECTED: Final = ("rejected_messages",)
"""Those that versions after these did not write either: in their runs no application rejects a message."""

EVENTS: Final = pa.schema(
    [
        RUN_ID,
        instant("at_ns", "When it happened; of totals, the end of the run."),
        column(
            "client_id", pa.int32(), "Number of the client, named in the table `clients`; -1: the whole broker."
        ),
        column("queue", NAME, "Queue that it happened to; null: none.", nullable=True),
        column("event", NAME, "Name of the event, as `slow-subscriber`."),
        column("value", pa.int64(), "Value in the event's own unit, as a percentage or a number of messages.",
               nullable=True),
    ]
)  # fmt: skip
"""One row an event that no message row has: slow subscriber, buffer load thresholds, disconnects, changes."""

BUCKETS_PER_OCTAVE_BITS: Final = 7
"""Latency buckets are 2^-7 of their octave wide: a percentile read from them is within 0.8 %."""

BUCKET_COUNT: Final = (63 - BUCKETS_PER_OCTAVE_BITS + 1) << BUCKETS_PER_OCTAVE_BITS


def bucket_of(duration_ns: int) -> int:
    """Return the bucket of a duration ≥ 0: exact below 2^8 ns, then 128 a power of two (as the kernels compute it)."""
    bits = duration_ns.bit_length()
    shift = max(0, bits - BUCKETS_PER_OCTAVE_BITS - 1)
    return (shift << BUCKETS_PER_OCTAVE_BITS) + (duration_ns >> shift)


def bucket_bounds_ns(bucket: int) -> tuple[int, int]:
    """Return the first and the last duration of a bucket, both included."""
    octave = 1 << BUCKETS_PER_OCTAVE_BITS
    if bucket < 2 * octave:
        return bucket, bucket
    shift = (bucket >> BUCKETS_PER_OCTAVE_BITS) - 1
    mantissa = bucket - (shift << BUCKETS_PER_OCTAVE_BITS)
    return mantissa << shift, ((mantissa + 1) << shift) - 1
