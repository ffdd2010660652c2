"""The messages between the service and its clients, live or simulated.

A transport passes inbound messages to `ServiceEngine.receive`; `take_ready` returns outbound ones. An outbound message
may be sent once the record with index `rests_on` in its queue's stream is committed; 0: at once, see `qsctl.core.turn`.
A queue is addressed by its full name, see `QueueName`. A producer addresses a topic, and each queue of that topic has
its own copy and acknowledges by itself [QS 2.4 and 2.6].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum, IntFlag
from typing import Final, TypeAlias, TypeGuard, final

import msgspec

from qsctl.core.admin.command import Command
from qsctl.core.admin.reply import Reply
from qsctl.core.records import DeadLetterReason, EnqueuedRun
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity, identities_from, identity_behind
from qsctl.instant import INFINITE_NS, Nanoseconds

QueueName: TypeAlias = str
"""`<domain participant>/<shared subscriber>/<queue>`: the three `name` attributes, unique in one service."""

SERVICE: Final[Guid] = NIL_GUID
"""The sender of the notices that the service itself sends."""


class SampleFlag(IntFlag):
    """The bits of a sample's flag field [QS 2.9, 5.4.6, 7.1.1.1]."""

    NONE = 0
    REDELIVERED = 1
    LAST_SHARED_READER_QUEUE = 2
    REPLICATE = 4
    INTERMEDIATE_REPLY_SEQUENCE = 8
    INSERTED = 0x100
    """A command enqueued the sample: it was moved, requeued or imported (an extension)."""
    END_OF_QUEUE = 0x200
    """Not a sample, but the answer to a consumer's question (an extension), see `QUESTION_NUMBER_MIN`."""


FLAGS_MASK: Final = 0xFFFF
EPOCH_SHIFT: Final = 16
"""Shift of the master's epoch in a delivery of a replicated queue: its lower 16 bits are above the flags."""
BRIDGES_MAX: Final = 15
_BRIDGES_SHIFT: Final = 12
BRIDGES_MASK: Final = BRIDGES_MAX << _BRIDGES_SHIFT
"""The bits of a sample's flags that count the bridges which it has crossed (an extension). Only a command sets them."""


def bridges_of(flags: int) -> int:
    """Return the number of bridges that a sample with these flags has crossed, at most `BRIDGES_MAX`."""
    return (flags & BRIDGES_MASK) >> _BRIDGES_SHIFT


def flags_over_bridge(flags: int) -> int:
    """Return the flags of a sample after one more bridge."""
    return flags & ~BRIDGES_MASK | min(bridges_of(flags) + 1, BRIDGES_MAX) << _BRIDGES_SHIFT


QUESTION_NUMBER_MIN: Final = 1 << 62
"""Smallest sequence number of a question, an acknowledgment of an identity with the nil GUID (an extension).

By it a consumer asks, after its other acknowledgments, whether its queue has more samples. After all samples that it
could send to this consumer, the queue answers with a `Delivery` of the same identity and `END_OF_QUEUE`.
"""


class AckResponse(IntEnum):
    """The single byte of an application-level acknowledgment [QS 2.4 and 2.5].

    RETURNED is an extension, for a consumer that leaves in good order without having answered: the sample waits again,
    flagged as redelivered, and no attempt is counted.
    """

    REJECTED = 0
    ACCEPTED = 1
    RETURNED = 2


@final
class Write(msgspec.Struct, frozen=True, array_like=True, tag="write", gc=False):
    """A producer's sample for every queue of a topic.

    `lifespan_ns`, if finite, takes precedence over the queue's [QS 2.9]. `participant` is the name of the domain
    participant in whose domain the sample arrived. The `related_*` members route and correlate a reply [QS 2.11].
    `attempt` is the number of times that the producer has written the sample; 0: unknown. With `waits_when_full` the
    sample waits outside a full queue, whatever the replacement policy [QS 2.15.4]: its producer receives no
    acknowledgment, and DDS reliability blocks it.
    """

    participant: str
    topic_name: str
    identity: SampleIdentity
    payload: bytes
    source_guid: Guid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: Guid = NIL_GUID
    flags: int = 0
    lifespan_ns: Nanoseconds = INFINITE_NS
    attempt: int = 0
    waits_when_full: bool = False

    def singles(self) -> tuple[Write]:
        """Return the sample, as `WriteRun.singles` does."""
        return (self,)


class ConsumerJoined(msgspec.Struct, frozen=True, array_like=True, tag="joined", gc=False):
    """A consumer attached to a queue.

    `source_guid` identifies a requester's reader: it receives only samples with an equal related source GUID [QS
    2.11.3]. A nil one receives any sample that is not addressed to a requester; in an ordinary queue, any sample.

    `unacked_threshold` and `reception_enabled`, if not None, are the reader's own, even if the queue ignores
    availability reports [QS 2.10]: a reader that receives few samples and leaves must not be sent the whole queue.
    Joining again may change them.
    """

    queue: QueueName
    consumer_guid: Guid
    source_guid: Guid = NIL_GUID
    unacked_threshold: int | None = None
    reception_enabled: bool | None = None


class ConsumerLeft(msgspec.Struct, frozen=True, array_like=True, tag="left", gc=False):
    """A consumer detached or vanished; its samples are redelivered.

    A vanished consumer's deliveries have failed: each counts as an attempt, and the samples may be duplicates. A
    consumer that detaches in good order `hands_back` the samples that its program did not receive: they wait again
    as if they had not been sent. So do the samples at the positions `unsent`, which were not sent before the consumer
    was found to be gone.
    """

    queue: QueueName
    consumer_guid: Guid
    hands_back: bool = False
    unsent: tuple[int, ...] = ()

    def with_unsent(self, positions: Iterable[int]) -> ConsumerLeft:
        """Return the message with further positions of unsent samples; a position of 0 is ignored."""
        return msgspec.structs.replace(self, unsent=(*self.unsent, *(each for each in positions if each)))


class ConsumerAvailability(msgspec.Struct, frozen=True, array_like=True, tag="availability", gc=False):
    """A consumer's availability report, `ConsumerAvailability_t` [QS 2.10.2]."""

    queue: QueueName
    consumer_guid: Guid
    reception_enabled: bool
    unacked_threshold: int


@final
class Acknowledgment(msgspec.Struct, frozen=True, array_like=True, tag="ack", gc=False):
    """A consumer's acceptance or rejection of a sample that it was sent [QS 2.5]."""

    queue: QueueName
    consumer_guid: Guid
    identity: SampleIdentity
    response: AckResponse = AckResponse.ACCEPTED

    def singles(self) -> tuple[Acknowledgment]:
        """Return the acknowledgment, as `RunAcknowledgment.singles` does."""
        return (self,)


class ProducerLeft(msgspec.Struct, frozen=True, array_like=True, tag="producer_left", gc=False):
    """A producer vanished: its samples that still wait outside a full queue leave with it [QS 2.15.4]."""

    participant: str
    topic_name: str
    writer_guid: Guid


class CommandRequest(msgspec.Struct, frozen=True, array_like=True, tag="command"):
    """An administration command with its body parsed [QS 5]."""

    request: SampleIdentity
    target: str
    command: Command


@final
class Delivery(msgspec.Struct, frozen=True, array_like=True, tag="delivery", gc=False):
    """A sample for one consumer.

    `payload` is None if the queue keeps it on disk only: the driver reads it from the queue's storage by `position`
    before sending [QS 2.14.2], see `qsctl.core.payloads`. For `flags` see `EPOCH_SHIFT`. The members `dead_letter_…`
    are set by a dead-letter queue: `DeadLetter_t` [QS 2.12]. Its `identity`, by which it is acknowledged, is the dead
    letter's own; `dead_letter_identity` is that of the undelivered sample.
    """

    queue: QueueName
    consumer_guid: Guid
    position: int
    identity: SampleIdentity
    payload: bytes | None
    source_guid: Guid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: Guid = NIL_GUID
    flags: int = 0
    attempt: int = 1
    rests_on: int = 0
    dead_letter_from: str = ""
    dead_letter_reason: DeadLetterReason | None = None
    dead_letter_identity: SampleIdentity = NIL_IDENTITY

    @property
    def original_identity(self) -> SampleIdentity:
        """Return the identity that the sample's producer gave it."""
        return self.identity if self.dead_letter_reason is None else self.dead_letter_identity

    def positions(self) -> tuple[int]:
        """Return the position of the sample, as `RunDelivery.positions` does."""
        return (self.position,)

    def singles(self) -> tuple[Delivery]:
        """Return the delivery, as `RunDelivery.singles` does."""
        return (self,)


@final
class WriteAcknowledgment(msgspec.Struct, frozen=True, array_like=True, tag="write_ack", gc=False):
    """A queue's answer to a producer [QS 2.4]; a queue that does not acknowledge sends none.

    A replica that rejects a sample states the rejected `attempt`; 0: unknown. An acceptance holds for all attempts.
    `lacks_master`: the replica rejects it because no master has appended it to the log [QS 7.1.2], not for its content.
    """

    queue: QueueName
    identity: SampleIdentity
    response: AckResponse
    rests_on: int = 0
    attempt: int = 0
    lacks_master: bool = False

    def singles(self) -> tuple[WriteAcknowledgment]:
        """Return the answer, as `RunAccepted.singles` does."""
        return (self,)


RUN_SAMPLES_MIN: Final = 8
"""Number of samples, or answers, from which on they are processed as a run: a run costs what some single ones cost."""


@final
class WriteRun(msgspec.Struct, frozen=True, array_like=True, tag="write_run", gc=False):
    """A producer's samples of consecutive sequence numbers, which differ in number and payload only.

    A transport makes runs of samples that arrive together; they are held, sent and answered as runs where no rule
    distinguishes them, see `qsctl.core.queue`.

    The effect is that of a `Write` for each; `identity` is that of the first.
    """

    participant: str
    topic_name: str
    identity: SampleIdentity
    payloads: tuple[bytes, ...]
    source_guid: Guid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: Guid = NIL_GUID
    flags: int = 0
    lifespan_ns: Nanoseconds = INFINITE_NS
    attempt: int = 0

    @property
    def count(self) -> int:
        """Return the number of samples."""
        return len(self.payloads)

    def part(self, start: int, stop: int) -> WriteRun:
        """Return the samples between two offsets."""
        identity = identity_behind(self.identity, start)
        return msgspec.structs.replace(self, identity=identity, payloads=self.payloads[start:stop])

    def enqueued(
        self, queue: str, position: int, enqueued_at_ns: Nanoseconds, expires_at_ns: Nanoseconds, flags: int
    ) -> EnqueuedRun:
        """Return the record of the samples, which a queue of this full name has accepted from a position on."""
        return EnqueuedRun(
            queue,
            position,
            self.identity,
            self.payloads,
            enqueued_at_ns,
            expires_at_ns,
            self.source_guid,
            self.related_source_guid,
            self.related_identity,
            self.related_reader_guid,
            flags,
        )

    def singles(self) -> list[Write]:
        """Return the samples one by one."""
        return [
            Write(
                self.participant,
                self.topic_name,
                identity,
                payload,
                self.source_guid,
                self.related_source_guid,
                self.related_identity,
                self.related_reader_guid,
                self.flags,
                self.lifespan_ns,
                self.attempt,
            )
            for identity, payload in zip(identities_from(self.identity, len(self.payloads)), self.payloads, strict=True)
        ]


@final
class RunAcknowledgment(msgspec.Struct, frozen=True, array_like=True, tag="run_ack", gc=False):
    """A consumer's acceptance of samples whose sequence numbers have a constant step.

    The effect is that of an `Acknowledgment` for each; `identity` is that of the first.
    """

    queue: QueueName
    consumer_guid: Guid
    identity: SampleIdentity
    count: int
    step: int = 1

    def singles(self) -> list[Acknowledgment]:
        """Return the acknowledgments one by one."""
        return [
            Acknowledgment(self.queue, self.consumer_guid, identity)
            for identity in identities_from(self.identity, self.count, self.step)
        ]


@final
class RunDelivery(msgspec.Struct, frozen=True, array_like=True, tag="run_delivery", gc=False):
    """Samples of a run for one consumer, for the first time. Numbers and positions have a constant step.

    The payloads are None if the queue keeps all of them on disk only, see `Delivery`.

    `last_flags` are the flags of the last sample, `flags` those of the others.
    """

    queue: QueueName
    consumer_guid: Guid
    position: int
    identity: SampleIdentity
    payloads: Sequence[bytes] | Sequence[None]
    source_guid: Guid
    related_source_guid: Guid
    related_identity: SampleIdentity
    related_reader_guid: Guid
    flags: int
    last_flags: int
    step: int
    rests_on: int

    @property
    def size_bytes(self) -> int:
        """Return the size of all payloads."""
        return sum([len(each or b"") for each in self.payloads])

    def positions(self) -> range:
        """Return the positions of the samples."""
        return range(self.position, self.position + self.step * len(self.payloads), self.step)

    def singles(self) -> list[Delivery]:
        """Return the deliveries one by one."""
        count = len(self.payloads)
        return [
            Delivery(
                self.queue,
                self.consumer_guid,
                position,
                identity,
                payload,
                self.source_guid,
                self.related_source_guid,
                self.related_identity,
                self.related_reader_guid,
                self.flags if position != self.position + self.step * (count - 1) else self.last_flags,
                1,
                self.rests_on,
            )
            for position, identity, payload in zip(
                self.positions(), identities_from(self.identity, count, self.step), self.payloads, strict=True
            )
        ]


@final
class RunAccepted(msgspec.Struct, frozen=True, array_like=True, tag="run_accepted", gc=False):
    """A queue's positive answers to a producer for samples of consecutive sequence numbers."""

    queue: QueueName
    identity: SampleIdentity
    count: int
    rests_on: int = 0

    def singles(self) -> list[WriteAcknowledgment]:
        """Return the answers one by one."""
        return [
            WriteAcknowledgment(self.queue, identity, AckResponse.ACCEPTED, self.rests_on)
            for identity in identities_from(self.identity, self.count)
        ]


def one_by_one(messages: Iterable[Outbound]) -> Iterator[Outbound]:
    """Yield messages, those for a run one by one."""
    for message in messages:
        if isinstance(message, RunDelivery | RunAccepted):
            yield from message.singles()
        else:
            yield message


class CommandReply(msgspec.Struct, frozen=True, array_like=True, tag="reply"):
    """One reply to a command. All replies but the last one are `intermediate` [QS 5.4.6].

    `queue` is the queue whose samples the command concerned; empty: none.
    """

    request: SampleIdentity
    replying_service: str
    reply: Reply
    intermediate: bool = False
    queue: QueueName = ""
    rests_on: int = 0


class StatusPublication(msgspec.Struct, frozen=True, array_like=True, tag="status"):
    """The periodic status of a queue whose monitoring is enabled [QS 6]."""

    queue: QueueName
    status: SharedReaderQueueStatus
    rests_on: int = 0


Inbound: TypeAlias = (
    Write
    | ConsumerJoined
    | ConsumerLeft
    | ConsumerAvailability
    | Acknowledgment
    | ProducerLeft
    | CommandRequest
    | WriteRun
    | RunAcknowledgment
)
Outbound: TypeAlias = Delivery | WriteAcknowledgment | CommandReply | StatusPublication | RunDelivery | RunAccepted
Message: TypeAlias = Inbound | Outbound


def is_for(message: Outbound, left: ConsumerLeft) -> TypeGuard[Delivery | RunDelivery]:
    """Return whether a message is a delivery to the consumer that left."""
    return isinstance(message, Delivery | RunDelivery) and (message.consumer_guid, message.queue) == (
        left.consumer_guid,
        left.queue,
    )
