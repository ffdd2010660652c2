"""The Arrow schemas of a run folder: what simulator and service write, what Spark and people read.

A run folder holds `run.json` (what was run, with which seed, whether it is complete), and Parquet files
partitioned by replication: `messages/replication=N/part-*.parquet` at level `messages` and above,
`counters/replication=N/part-*.parquet` always, `events/replication=N/…` at level `events`. Times are integer
nanoseconds; durations from `enqueued_ns` are null where it never happened.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from qsctl.eventlog.outcomes import LOSS_COLUMNS
from qsctl.eventlog.outcomes import Outcome as Outcome


class LogLevel(StrEnum):
    """The level of detail that a run writes; each level includes the one before."""

    COUNTERS = "counters"
    MESSAGES = "messages"
    EVENTS = "events"


_NAME: Final = pa.dictionary(pa.int32(), pa.string())

MESSAGES: Final = pa.schema(
    [
        pa.field("run_id", _NAME, nullable=False),
        pa.field("client_id", pa.int32(), nullable=False),
        pa.field("queue", _NAME, nullable=False),
        pa.field("topic_id", pa.int32(), nullable=False),
        pa.field("size_bytes", pa.int32(), nullable=False),
        pa.field("work_units", pa.int32(), nullable=False),
        pa.field("enqueued_ns", pa.int64(), nullable=False),
        pa.field("enter_ns", pa.int64()),
        pa.field("wait_ns", pa.int64()),
        pa.field("send_ns", pa.int64()),
        pa.field("acknowledge_ns", pa.int64()),
        pa.field("outcome", _NAME, nullable=False),
        pa.field("discard_indication", pa.bool_(), nullable=False),
        pa.field("attempts", pa.int32(), nullable=False),
    ]
)
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

COUNTERS: Final = pa.schema(
    [
        pa.field("run_id", _NAME, nullable=False),
        pa.field("client_id", pa.int32(), nullable=False),
        pa.field("client", _NAME, nullable=False),
        pa.field("queue", _NAME, nullable=False),
        pa.field("arrived_messages", pa.int64(), nullable=False),
        pa.field("delivered_messages", pa.int64(), nullable=False),
        *(pa.field(name, pa.int64(), nullable=False) for name in LOSS_COLUMNS),
        pa.field("elided_messages", pa.int64(), nullable=False),
        pa.field("evicted_messages", pa.int64(), nullable=False),
        pa.field("redelivered_messages", pa.int64(), nullable=False),
        pa.field("discard_indications", pa.int64(), nullable=False),
        pa.field("delivered_bytes", pa.int64(), nullable=False),
        pa.field("length_messages", pa.int64(), nullable=False),
        pa.field("length_work_units", pa.int64(), nullable=False),
        pa.field("unacknowledged_messages", pa.int64(), nullable=False),
        pa.field("waiting_messages", pa.int64(), nullable=False),
        pa.field("high_water_mark_work_units", pa.int64(), nullable=False),
        pa.field("max_depth_work_units", pa.int64(), nullable=False),
        pa.field("first_discard_ns", pa.int64()),
        pa.field("wait_sum_ns", pa.int64(), nullable=False),
        pa.field("wait_max_ns", pa.int64(), nullable=False),
        pa.field("observed_ns", pa.int64(), nullable=False),
        pa.field("histogram_bucket", pa.list_(pa.int32()), nullable=False),
        pa.field("histogram_count", pa.list_(pa.int64()), nullable=False),
        pa.field("done_messages", pa.int64()),
        pa.field("done_sum_ns", pa.int64()),
        pa.field("done_max_ns", pa.int64()),
        pa.field("done_bucket", pa.list_(pa.int32()), nullable=False),
        pa.field("done_count", pa.list_(pa.int64()), nullable=False),
        pa.field("unfinished_messages", pa.int64()),
        pa.field("unfinished_max_ns", pa.int64()),
        pa.field("unfinished_bucket", pa.list_(pa.int32()), nullable=False),
        pa.field("unfinished_count", pa.list_(pa.int64()), nullable=False),
    ]
)
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
        pa.field("run_id", _NAME, nullable=False),
        pa.field("at_ns", pa.int64(), nullable=False),
        pa.field("client_id", pa.int32(), nullable=False),
        pa.field("queue", _NAME),
        pa.field("event", _NAME, nullable=False),
        pa.field("value", pa.int64()),
    ]
)
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
