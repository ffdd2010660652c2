"""The durable records. Replaying a store's records into a fresh engine gives the state that wrote them.

A message never leaves before the record that it rests on is stored. Records of one queue are in order; `position` is
the sample's place in its queue and never reused. A move to the dead letters stores the dead letter first and the
removal after; the dead letter identifies the sample, so that a restart completes a move that a crash cut in two.
Replicated queues share one stream with their dead-letter queue: there the dead letter is the one record of the move.

A command that moves a sample stores it in the target first, with the place that it came from, and the removal after.
The record in the target is the move: wherever the records end, a sample whose target has it is not in its source.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, SharedSubscriberSettings
from qsctl.identity import (
    NIL_GUID,
    NIL_IDENTITY,
    NIL_INCARNATION,
    Count,
    Guid,
    SampleIdentity,
    WholeGuid,
    WholeIncarnation,
)
from qsctl.instant import Nanoseconds


class RemovalCause(IntEnum):
    """Why a sample left its queue for good [QS 2.9 and 5.4.3]."""

    DELIVERED = 1
    EXPIRED = 2
    FAILED_DELIVERY = 3
    FLUSHED = 4


class DeadLetterReason(IntEnum):
    """`UndeliveredReasonKind` [QS 2.12]."""

    LIFESPAN = 0
    MAX_RETRIES = 1


class MovedFrom(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The place that a command moved a sample from: a queue, by full name, its incarnation, and a position in it."""

    queue: str
    position: Count
    incarnation: WholeIncarnation = NIL_INCARNATION


class Enqueued(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A sample was accepted. `expires_at_ns` is absolute, set once [QS 2.14.2.1].

    The members `dead_letter_…` are set in a dead-letter queue only: the queue the sample came from
    (`<topic>@<subscriber>`) and its incarnation, why, and its position there (0: a store of version 0.1 lacks it). Such
    a record's `identity` is that of the undelivered sample. `flags` have the bit REDELIVERED where a consumer may have
    processed it. `payload_from`, a queue and a position in it, replaces a payload that is on disk only: the driver puts
    the payload in its place before it stores the record, see `qsctl.core.payloads`. With `moved_from` the record also
    removes the sample at that place.
    """

    queue: str
    position: Count
    identity: SampleIdentity
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: WholeGuid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: WholeGuid = NIL_GUID
    flags: int = 0
    dead_letter_from: str = ""
    dead_letter_reason: DeadLetterReason | None = None
    dead_letter_position: int = 0
    payload: bytes = b""
    payload_from: tuple[str, int] | None = None
    dead_letter_incarnation: WholeIncarnation = NIL_INCARNATION
    moved_from: MovedFrom | None = None


class Assigned(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A sample is about to be sent to a consumer, for the `attempt`-th time (1 is the first)."""

    queue: str
    position: Count
    consumer_guid: Guid
    attempt: int


class Returned(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A sample went back to Enqueued after `attempts` failed deliveries (rejected, timed out, consumer gone).

    In a snapshot it also names who held the sample before, latest last: they may still acknowledge it, late.
    """

    queue: str
    position: Count
    attempts: int
    redelivered: bool
    past_holders: tuple[Guid, ...] = ()


class Undeliverable(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    """An expired sample, or one whose attempts are spent, stays in its queue: the dead-letter queue has no room."""

    queue: str
    position: Count
    reason: DeadLetterReason


class Removed(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """A sample left the queue for good."""

    queue: str
    position: Count
    cause: RemovalCause


class Remembered(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """The creation of a queue, and the identities that it lately retired, oldest first: duplicates stay suppressed.

    It begins a queue's stream, with nothing retired yet, and is part of a compacted store. Every position in the stream
    is one of this incarnation.
    """

    queue: str
    next_position: int
    identities: tuple[SampleIdentity, ...]
    incarnation: WholeIncarnation = NIL_INCARNATION


class EpochBegan(msgspec.Struct, frozen=True, array_like=True, tag=20, gc=False):
    """A replica became master of a replicated stream; each later record is of this epoch, up to the next of this kind.

    What was assigned returns to Enqueued as redelivered: its consumer may have processed it [QS 7.1.1.3]. With
    `flags_all` every held sample is: the master before may have sent it without a committed assignment, see
    `SendsAhead`. `incarnation` is that of the replication group, which its first master drew where no command did.
    """

    queue: str
    epoch: int
    master: str
    flags_all: bool
    incarnation: WholeIncarnation = NIL_INCARNATION


class ReplicaRejoined(msgspec.Struct, frozen=True, array_like=True, tag=21, gc=False):
    """A replica that had lost its log holds it again up to here, and votes from then on.

    `run` is the number of its process, as its frames carry it.
    """

    queue: str
    replica: str
    run: int


class SendsAhead(msgspec.Struct, frozen=True, array_like=True, tag=25, gc=False):
    """From here on the master sends samples before their assignment is committed, or does not [QS 7.1.1.3].

    Once this is committed, for the former; at once, for the latter. An epoch begins with the former. So a new master
    whose log ends without it can decide for each sample whether a consumer may have it.
    """

    queue: str
    is_allowed: bool


class ConfigurationKnown(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """The configuration that a cluster has from here on [QS 7.2]: the first master's own, or a snapshot's.

    `queue` names the stream. `origin` distinguishes this beginning from any other of the same members; `subscribers`
    are by domain participant. `created` has, by full name, the entry of the command that created each.
    """

    queue: str
    origin: str
    subscribers: dict[str, tuple[SharedSubscriberSettings, ...]]
    created: dict[str, int]


class ServiceStarted(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The configuration a service started with [QS 2.14.1].

    `incarnation` is that of the service. A subscriber has it too, and a queue that of its subscriber, unless
    `incarnations` lists another by full name. `deleted` has the streams of replicated queues that were deleted and
    whose log may be there all the same, with the incarnation of the group where they were created again.
    """

    settings: ServiceSettings
    incarnation: WholeIncarnation = NIL_INCARNATION
    incarnations: dict[str, WholeIncarnation] = {}
    deleted: dict[str, WholeIncarnation] = {}


class SubscriberCreated(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """A shared subscriber came into being in a domain participant, with its queues: one incarnation for all."""

    participant: str
    settings: SharedSubscriberSettings
    incarnation: WholeIncarnation = NIL_INCARNATION


class SubscriberDeleted(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """A shared subscriber went, with its queues."""

    participant: str
    subscriber: str


class QueueCreated(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """A queue came into being, and its implicit reply queue, which has its incarnation."""

    participant: str
    subscriber: str
    settings: SharedReaderQueueSettings
    incarnation: WholeIncarnation = NIL_INCARNATION


class QueueDeleted(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """A queue went, with its samples."""

    participant: str
    subscriber: str
    name: str


class ConfigurationFollowed(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The service follows the configuration of its cluster up to the entry `index` of the log that began with `origin`.

    `created` is `ConfigurationKnown.created` for what the service hosts, or is about to create: by it a queue that was
    deleted and created again while the service was away is known for another one.
    """

    origin: str
    index: int
    created: dict[str, int]


class QueueChanged(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """A queue has other settings, see `core.queue.change`; `settings` are all of them."""

    participant: str
    subscriber: str
    settings: SharedReaderQueueSettings


QueueRecord: TypeAlias = (
    Enqueued
    | Assigned
    | Returned
    | Undeliverable
    | Removed
    | Remembered
    | EpochBegan
    | ReplicaRejoined
    | SendsAhead
    | ConfigurationKnown
)
"""Records of a queue's own store, or of that of its replication group; `queue` names the queue or the stream."""

ServiceRecord: TypeAlias = (
    ServiceStarted
    | SubscriberCreated
    | SubscriberDeleted
    | QueueCreated
    | QueueDeleted
    | QueueChanged
    | ConfigurationFollowed
)
"""Belong to the service state."""

Record: TypeAlias = QueueRecord | ServiceRecord
