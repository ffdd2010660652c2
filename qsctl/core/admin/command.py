"""Administration commands as typed values, with their bodies parsed [QS 5.4].

A driver converts the wire's `<ACTION> <target> <resource> [<body>]` into one of these. `config` parses the XML bodies.
Selectors remain text until the engine parses them, so that a malformed one is answered with an error, not dropped.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.identity import NIL_INCARNATION, Incarnation, SampleIdentity, WholeIncarnation
from qsctl.resource import ResourceIdentifier


class CommandAction(StrEnum):
    """The actions of [QS 5.2], and UPDATE, an extension."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    GET = "GET"
    SHUTDOWN = "SHUTDOWN"


class FirstMembers(msgspec.Struct, frozen=True, array_like=True):
    """The members that a replication group begins with, by application name."""

    voters: tuple[str, ...]
    learners: tuple[str, ...] = ()


class CreateQueue(msgspec.Struct, frozen=True, tag="create_queue"):
    """CREATE a shared reader queue in a shared subscriber [QS 5.4.1].

    `members` is set by the master of a replicated configuration once its members have changed: those that a replicated
    queue begins with. None: those that the cluster was formed with.
    """

    subscriber: ResourceIdentifier
    settings: SharedReaderQueueSettings
    members: FirstMembers | None = None


class Creation(msgspec.Struct, frozen=True, array_like=True):
    """One creation of a queue or subscriber, among all that have had the same name in a cluster.

    `origin` identifies the replicated log of commands (empty: unknown); `index` is the log entry that created the
    resource (0: it existed when the log began).
    """

    origin: str
    index: int


class UpdateQueue(msgspec.Struct, frozen=True, tag="update_queue"):
    """UPDATE a shared reader queue: replace its settings without a restart (an extension).

    `settings` are complete, as for CREATE; only settings that can be changed in place may differ, see
    `core.queue.change`. `creation` identifies the queue that the client meant: if another queue has the name by the
    time the command is carried out, the command is refused. None: any queue of this name.
    """

    queue: ResourceIdentifier
    settings: SharedReaderQueueSettings
    creation: Creation | None = None


class DeleteQueue(msgspec.Struct, frozen=True, tag="delete_queue"):
    """DELETE a shared reader queue with its samples [QS 5.4.2].

    With `only_if_empty`, an extension, the command is refused if the queue or its implicit reply queue holds samples.
    `creation` as in `UpdateQueue`.
    """

    queue: ResourceIdentifier
    only_if_empty: bool = False
    creation: Creation | None = None


class FlushQueue(msgspec.Struct, frozen=True, tag="flush_queue"):
    """DELETE …/message: remove the samples that a selector matches; an empty selector matches all [QS 5.4.3]."""

    queue: ResourceIdentifier
    selector: str = ""


class GetStatus(msgspec.Struct, frozen=True, tag="get_status"):
    """GET …/status [QS 5.4.4]. For the service itself (`/status`) there is one reply per queue.

    `queue` None, an extension: the replica of the configuration that the members share [QS 7.2].
    """

    queue: ResourceIdentifier | None


class GetData(msgspec.Struct, frozen=True, tag="get_data"):
    """GET /data of the service, or …/data of one queue [QS 5.4.5]."""

    resource: ResourceIdentifier


class GetMessages(msgspec.Struct, frozen=True, tag="get_messages"):
    """GET …/message: the samples that a selector matches, one per reply [QS 5.4.6]; at most `count`, 0: all.

    With `after_position`, an extension, only samples behind that position are examined, so that a client can read a
    long queue in parts. `incarnation` is the creation of the queue to which the position belongs; if the name belongs
    to another creation now, the command is refused. Nil: any creation.

    With `allows_stale`, an extension, a replica answers also while it has no master: what it has may be behind.
    """

    queue: ResourceIdentifier
    selector: str = ""
    count: int = 0
    after_position: int = 0
    incarnation: Incarnation = NIL_INCARNATION
    allows_stale: bool = False


class InsertSamples(msgspec.Struct, frozen=True, tag="insert_samples"):
    """INSERT …/message: enqueue samples in this queue alone, with their identities (an extension).

    A sample that the queue holds is a duplicate; one that has left the queue is enqueued again. The reply is sent once
    all inserted samples are as durable as the queue's own.
    """

    queue: ResourceIdentifier
    samples: tuple[InsertedSample, ...]


class HeldSample(msgspec.Struct, frozen=True, array_like=True):
    """A reference to a held sample by position and identity; a sample of a later incarnation never matches.

    The members `dead_letter_…` identify a dead letter by its origin: a dead-letter queue may hold several of one
    identity.
    """

    position: int
    identity: SampleIdentity
    dead_letter_from: str = ""
    dead_letter_position: int = 0
    dead_letter_incarnation: WholeIncarnation = NIL_INCARNATION


class FlagSamples(msgspec.Struct, frozen=True, tag="flag_samples"):
    """UPDATE …/message: flag the listed samples as redelivered, except those that a consumer has (an extension).

    A program that copies a sample elsewhere flags it first, so that both copies carry the flag.
    """

    queue: ResourceIdentifier
    samples: tuple[HeldSample, ...]


class RemoveSamples(msgspec.Struct, frozen=True, tag="remove_samples"):
    """DELETE …/message: remove the listed samples that the queue still holds (an extension)."""

    queue: ResourceIdentifier
    samples: tuple[HeldSample, ...]


class MoveSamples(msgspec.Struct, frozen=True, tag="move_samples"):
    """INSERT …/message: move the listed samples from another queue of the service into this one (an extension).

    Each sample moves atomically: after a crash exactly one of the two queues holds it. The reply is sent once the move
    is durable. Samples that a consumer has, and samples that the target refuses, remain in the source.

    `queue` is the source and `incarnation` its creation (nil: any). With `begins_anew` the lifespan of each sample
    restarts. `payloads`, in the order of `samples`, are for a target that keeps payloads in memory while the source has
    them on disk only; empty: the service has all that it needs.
    """

    queue: ResourceIdentifier
    target: ResourceIdentifier
    samples: tuple[HeldSample, ...]
    incarnation: Incarnation = NIL_INCARNATION
    begins_anew: bool = False
    payloads: tuple[bytes, ...] = ()


class CreateSubscriber(msgspec.Struct, frozen=True, tag="create_subscriber"):
    """CREATE a shared subscriber in a domain participant [QS 5.4.7]; `members` as in `CreateQueue`."""

    participant: ResourceIdentifier
    settings: SharedSubscriberSettings
    members: FirstMembers | None = None


class DeleteSubscriber(msgspec.Struct, frozen=True, tag="delete_subscriber"):
    """DELETE a shared subscriber with its queues [QS 5.4.8].

    With `only_if_empty`, an extension, the command is refused if one of the queues holds samples. `creation` as in
    `UpdateQueue`, of the subscriber.
    """

    subscriber: ResourceIdentifier
    only_if_empty: bool = False
    creation: Creation | None = None


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """SHUTDOWN the service [QS 5.4.9]."""


class ForceQuorum(msgspec.Struct, frozen=True, tag="force_quorum"):
    """ENABLE a replicated queue that has lost a majority of its replicas: form a new group without them (an extension).

    `queue` None: the configuration that the members share, which is replicated too [QS 7.2]. `is_trial`: only report
    what would happen to this member's replica.
    """

    queue: ResourceIdentifier | None
    is_trial: bool = False


class MemberAction(StrEnum):
    """A change of the members of a replication group."""

    ADD = "add"
    ADD_WITNESS = "add_witness"
    PROMOTE = "promote"
    REMOVE = "remove"


class ChangeMembers(msgspec.Struct, frozen=True, tag="change_members"):
    """UPDATE the members of a replication group, one at a time (an extension).

    `queue` None: the configuration that the members share. `is_trial`: only report whether the change would be made.
    """

    queue: ResourceIdentifier | None
    action: MemberAction
    member: str
    is_trial: bool = False


class StepDown(msgspec.Struct, frozen=True, tag="step_down"):
    """Let the master of a replication group hand over to another member that holds as much (an extension).

    `queue` None: the configuration that the members share. `successor`: the member; empty: any. `is_trial`: only report
    which one it would be.
    """

    queue: ResourceIdentifier | None
    successor: str = ""
    is_trial: bool = False


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Let a service hand over all that it is the master of, and be no master again before it restarts (an extension).

    The reply is sent once it is master of nothing. `is_trial`: only report what it would hand over.
    """

    is_trial: bool = False


class StartRecording(msgspec.Struct, frozen=True, tag="start_recording"):
    """CREATE /recording: start recording the service's events into a folder on its own machine (an extension).

    `folder` is created, or must be empty; a relative path is relative to the service's working directory. `level` is
    `counters`, `messages` or `events`. `max_bytes` is the folder size at which the recording ends, 0: no limit.
    `sample_share` is the fraction of the samples that are recorded as rows, above 0 and at most 1.
    """

    folder: str
    level: str = "messages"
    max_bytes: int = 0
    sample_share: float = 1.0


class StopRecording(msgspec.Struct, frozen=True, tag="stop_recording"):
    """DELETE /recording: end the recording in progress; its folder is complete soon after the reply (an extension)."""


class GetRecording(msgspec.Struct, frozen=True, tag="get_recording"):
    """GET /recording: the state of the recording in progress, or of the last one (an extension)."""


class GetConfiguration(msgspec.Struct, frozen=True, tag="get_configuration"):
    """GET /configuration: the whole current configuration as XML (an extension)."""


RecordingCommand: TypeAlias = StartRecording | StopRecording | GetRecording

Command: TypeAlias = (
    CreateQueue
    | UpdateQueue
    | DeleteQueue
    | FlushQueue
    | GetStatus
    | GetData
    | GetMessages
    | InsertSamples
    | FlagSamples
    | RemoveSamples
    | MoveSamples
    | CreateSubscriber
    | DeleteSubscriber
    | Shutdown
    | ForceQuorum
    | ChangeMembers
    | StepDown
    | Drain
    | GetConfiguration
    | RecordingCommand
)
