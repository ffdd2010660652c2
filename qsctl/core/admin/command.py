"""Administration commands with their bodies read [QS 5.4].

The wire's `<ACTION> <target> <resource> [<body>]` becomes one of these in a driver: XML bodies go through `config`,
selectors stay text until the engine parses them, so that a wrong one is answered and not dropped.
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
    """The actions of section 5.2, and UPDATE, an extension."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    GET = "GET"
    SHUTDOWN = "SHUTDOWN"


class CreateQueue(msgspec.Struct, frozen=True, tag="create_queue"):
    """CREATE a shared reader queue in a shared subscriber (5.4.1)."""

    subscriber: ResourceIdentifier
    settings: SharedReaderQueueSettings


class Creation(msgspec.Struct, frozen=True, array_like=True):
    """One creation among the queues or subscribers that had a name one after another, where a cluster orders its
    commands.

    `origin` is that of the log of commands (empty: unknown), `index` that of the entry that created it (0: it existed
    when the log began).
    """

    origin: str
    index: int


class UpdateQueue(msgspec.Struct, frozen=True, tag="update_queue"):
    """UPDATE a shared reader queue: give it all these settings while it works (an extension).

    `settings` are whole, as for CREATE. What differs must be what can be changed in place, see `core.queue.change`.
    `creation` is that of the queue that is meant: where another has the name once the command is carried out, it is
    refused. None: whichever has the name.
    """

    queue: ResourceIdentifier
    settings: SharedReaderQueueSettings
    creation: Creation | None = None


class DeleteQueue(msgspec.Struct, frozen=True, tag="delete_queue"):
    """DELETE a shared reader queue with its samples (5.4.2).

    `only_if_empty`, an extension: refused where it, or its implicit reply queue, holds samples. `creation` as in
    `UpdateQueue`.
    """

    queue: ResourceIdentifier
    only_if_empty: bool = False
    creation: Creation | None = None


class FlushQueue(msgspec.Struct, frozen=True, tag="flush_queue"):
    """DELETE …/message: remove the samples that a selector picks; an empty one picks all (5.4.3)."""

    queue: ResourceIdentifier
    selector: str = ""


class GetStatus(msgspec.Struct, frozen=True, tag="get_status"):
    """GET …/status (5.4.4). The service itself (`/status`) answers one reply a queue."""

    queue: ResourceIdentifier


class GetData(msgspec.Struct, frozen=True, tag="get_data"):
    """GET /data, or one queue's …/data (5.4.5)."""

    resource: ResourceIdentifier


class GetMessages(msgspec.Struct, frozen=True, tag="get_messages"):
    """GET …/message: the samples that a selector picks, one reply each (5.4.6); at most `count`, 0: all.

    With `after_position` only samples behind that position are looked at (an extension): a client reads a long queue
    in parts. `incarnation` is that of the queue that the position is of; where another one has its name now, the
    command is refused. Nil: of whatever queue there is.
    """

    queue: ResourceIdentifier
    selector: str = ""
    count: int = 0
    after_position: int = 0
    incarnation: Incarnation = NIL_INCARNATION


class InsertSamples(msgspec.Struct, frozen=True, tag="insert_samples"):
    """INSERT …/message: enqueue samples in this queue alone, with their identities (an extension).

    One that the queue holds is a duplicate; one that it lately let go enters again. The reply is sent once all are
    durable where the queue's samples are.
    """

    queue: ResourceIdentifier
    samples: tuple[InsertedSample, ...]


class HeldSample(msgspec.Struct, frozen=True, array_like=True):
    """A held sample as a command names it: by its position and its identity, so that a sample of a later run is not
    meant.

    The members `dead_letter_…` are of a dead letter: several of one identity may be in a dead-letter queue.
    """

    position: int
    identity: SampleIdentity
    dead_letter_from: str = ""
    dead_letter_position: int = 0
    dead_letter_incarnation: WholeIncarnation = NIL_INCARNATION


class FlagSamples(msgspec.Struct, frozen=True, tag="flag_samples"):
    """UPDATE …/message of samples that are named one by one: flag them as redelivered, as far as no consumer has them.

    An extension: a program that copies a sample elsewhere flags it before, so that both copies are flagged.
    """

    queue: ResourceIdentifier
    samples: tuple[HeldSample, ...]


class RemoveSamples(msgspec.Struct, frozen=True, tag="remove_samples"):
    """DELETE …/message of samples that are named one by one, as far as they are held (an extension)."""

    queue: ResourceIdentifier
    samples: tuple[HeldSample, ...]


class MoveSamples(msgspec.Struct, frozen=True, tag="move_samples"):
    """INSERT …/message of samples that another queue of the service holds: they leave that queue for this one.

    An extension. Each sample moves in one step: wherever the service ends, exactly one of the two queues holds it. The
    reply is sent once that is durable. Samples that a consumer has stay, and so does what the target refuses.

    `queue` holds the samples, `incarnation` is its (nil: whichever has the name). With `begins_anew` lifespans begin
    now. `payloads` are theirs, in the same order, for a target that keeps payloads in memory where the source has them
    on disk only; empty: the service has what it needs.
    """

    queue: ResourceIdentifier
    target: ResourceIdentifier
    samples: tuple[HeldSample, ...]
    incarnation: Incarnation = NIL_INCARNATION
    begins_anew: bool = False
    payloads: tuple[bytes, ...] = ()


class CreateSubscriber(msgspec.Struct, frozen=True, tag="create_subscriber"):
    """CREATE a shared subscriber in a domain participant (5.4.7)."""

    participant: ResourceIdentifier
    settings: SharedSubscriberSettings


class DeleteSubscriber(msgspec.Struct, frozen=True, tag="delete_subscriber"):
    """DELETE a shared subscriber with its queues (5.4.8).

    `only_if_empty`, an extension: refused where one of them holds samples. `creation` as in `UpdateQueue`, of the
    subscriber.
    """

    subscriber: ResourceIdentifier
    only_if_empty: bool = False
    creation: Creation | None = None


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """SHUTDOWN the service (5.4.9)."""


class ForceQuorum(msgspec.Struct, frozen=True, tag="force_quorum"):
    """ENABLE a replicated queue that lost a majority of its logs: it forms anew without them (an extension).

    `queue` None: the configuration that the members have in common, which is replicated, too [QS 7.2]. `is_trial`: only
    answer what would become of this member's replica.
    """

    queue: ResourceIdentifier | None
    is_trial: bool = False


class StartRecording(msgspec.Struct, frozen=True, tag="start_recording"):
    """CREATE /recording: record what the service does into a folder of its own machine (an extension).

    `folder` is made, or empty; one that is relative is relative to the service's working directory. `level` is
    `counters`, `messages` or `events`; `max_bytes` the size of the folder that ends the recording, 0 for none;
    `sample_share` which share of the samples has rows, above 0 and at most 1.
    """

    folder: str
    level: str = "messages"
    max_bytes: int = 0
    sample_share: float = 1.0


class StopRecording(msgspec.Struct, frozen=True, tag="stop_recording"):
    """DELETE /recording: end the recording in progress; the folder is complete a moment later (an extension)."""


class GetRecording(msgspec.Struct, frozen=True, tag="get_recording"):
    """GET /recording: the recording in progress, or the last one (an extension)."""


class GetConfiguration(msgspec.Struct, frozen=True, tag="get_configuration"):
    """GET /configuration: the whole configuration as it is now, as XML (an extension)."""


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
    | GetConfiguration
    | RecordingCommand
)
