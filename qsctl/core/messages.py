"""The messages between the service and its peers, live or simulated.

A transport passes inbound messages to `ServiceEngine.receive`; `take_ready` returns outbound ones. An outbound message
may leave once the record that it `rests_on` is committed, by its index in the stream of its queue; 0: at once, see
`qsctl.core.turn`. A queue is addressed by its full name, see `QueueName`; a producer addresses a topic, and each queue
of that topic has its own copy and acknowledges by itself [QS 2.4 and 2.6].
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, IntFlag
from typing import Final, TypeAlias, TypeGuard, final

import msgspec

from qsctl.core.admin.command import Command
from qsctl.core.admin.reply import Reply
from qsctl.core.records import DeadLetterReason
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

QueueName: TypeAlias = str
"""`<domain participant>/<shared subscriber>/<queue>`: the three `name` attributes, unique in one service."""

SERVICE: Final[Guid] = NIL_GUID
"""The sender of the service's own notices."""


class SampleFlag(IntFlag):
    """Bits of a sample's flag field [QS 2.9, 5.4.6, 7.1.1.1]."""

    NONE = 0
    REDELIVERED = 1
    LAST_SHARED_READER_QUEUE = 2
    REPLICATE = 4
    INTERMEDIATE_REPLY_SEQUENCE = 8
    INSERTED = 0x100
    """A command enqueued it: it was moved, requeued or imported (an extension)."""
    END_OF_QUEUE = 0x200
    """No sample, but the answer to a consumer's question (an extension), see `QUESTION_NUMBER_MIN`."""


FLAGS_MASK: Final = 0xFFFF
EPOCH_SHIFT: Final = 16
"""Above the flags of a delivery of a replicated queue are the lower 16 bits of its master's epoch."""


QUESTION_NUMBER_MIN: Final = 1 << 62
"""The smallest number of a question, which is an acknowledgment of an identity with the nil GUID (an extension).

A consumer asks by it, behind its other acknowledgments, whether its queue has more. Behind all that was sent to it
before, the queue answers a `Delivery` of the same identity with `END_OF_QUEUE`: what could be sent has been sent."""


class AckResponse(IntEnum):
    """The single byte of an application-level acknowledgment [QS 2.4 and 2.5].

    The last is our own, for a consumer that leaves in good order without an answer: the sample waits again, as
    redelivered, and no attempt is counted.
    """

    REJECTED = 0
    ACCEPTED = 1
    RETURNED = 2


@final
class Write(msgspec.Struct, frozen=True, array_like=True, tag="write", gc=False):
    """A producer's sample for every queue of a topic.

    `lifespan_ns`, when finite, takes precedence over the queue's [QS 2.9]. `participant` is the name of the domain
    participant whose domain it arrived in. `related_*` route and correlate a reply [QS 2.11]. `attempt` counts how
    often the producer wrote the sample; 0: not known. One that `waits_when_full` waits outside a full queue, whatever
    the replacement policy [QS 2.15.4]: its producer receives no acknowledgment, and is held back by reliability.
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


class ConsumerJoined(msgspec.Struct, frozen=True, array_like=True, tag="joined", gc=False):
    """A consumer attached to a queue.

    A requester's reader gives `source_guid`: it takes only samples whose related source GUID equals it
    [QS 2.11.3]; nil takes any sample that is not addressed to a requester, or any at all in an ordinary queue.
    The last two, when set, are the reader's own window, whatever the queue thinks of feedback [QS 2.10]: a reader
    that takes few samples and leaves must not be sent the whole queue. A second join may change them.
    """

    queue: QueueName
    consumer_guid: Guid
    source_guid: Guid = NIL_GUID
    unacked_threshold: int | None = None
    reception_enabled: bool | None = None


class ConsumerLeft(msgspec.Struct, frozen=True, array_like=True, tag="left", gc=False):
    """A consumer detached or vanished: what it holds is redelivered.

    A vanished consumer's deliveries have failed: an attempt each, and the samples may be duplicates. A consumer that
    detaches in good order `hands_back` what it did not touch: the samples wait again as if never sent. So do those that
    never left for a vanished one, for it was found to be gone: `unsent` are their positions.
    """

    queue: QueueName
    consumer_guid: Guid
    hands_back: bool = False
    unsent: tuple[int, ...] = ()

    def with_unsent(self, positions: Iterable[int]) -> ConsumerLeft:
        """Return the same message, with more positions that never left; 0 is that of no sample."""
        return msgspec.structs.replace(self, unsent=(*self.unsent, *(each for each in positions if each)))


class ConsumerAvailability(msgspec.Struct, frozen=True, array_like=True, tag="availability", gc=False):
    """`ConsumerAvailability_t` [QS 2.10.2]."""

    queue: QueueName
    consumer_guid: Guid
    reception_enabled: bool
    unacked_threshold: int


@final
class Acknowledgment(msgspec.Struct, frozen=True, array_like=True, tag="ack", gc=False):
    """A consumer accepts or rejects a sample that it was sent [QS 2.5]."""

    queue: QueueName
    consumer_guid: Guid
    identity: SampleIdentity
    response: AckResponse = AckResponse.ACCEPTED


class ProducerLeft(msgspec.Struct, frozen=True, array_like=True, tag="producer_left", gc=False):
    """A producer vanished: its samples that still wait outside a full queue leave with it [QS 2.15.4]."""

    participant: str
    topic_name: str
    writer_guid: Guid


class CommandRequest(msgspec.Struct, frozen=True, array_like=True, tag="command"):
    """An administration command, its body already read (chapter 5)."""

    request: SampleIdentity
    target: str
    command: Command


class Delivery(msgspec.Struct, frozen=True, array_like=True, tag="delivery", gc=False):
    """A sample for one consumer.

    `payload` is None where the queue keeps it on disk only: the driver reads it from the queue's storage by `position`
    before it sends [QS 2.14.2], see `qsctl.core.payloads`. `flags`: see `EPOCH_SHIFT`. The last three are set where a
    dead-letter queue sends: `DeadLetter_t` [QS 2.12]. There `identity`, by which it is acknowledged, is the dead
    letter's own, and `dead_letter_identity` that of the undelivered sample.
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
        """The identity that the sample's producer gave it."""
        return self.identity if self.dead_letter_reason is None else self.dead_letter_identity


class WriteAcknowledgment(msgspec.Struct, frozen=True, array_like=True, tag="write_ack", gc=False):
    """A queue's answer to a producer [QS 2.4]; absent where the queue acknowledges nothing.

    A replica that rejects a sample states the `attempt` that it rejects; 0: not known. An acceptance holds for all.
    `lacks_master`: the replica rejects it because no master has appended it to the log [QS 7.1.2], not for its content.
    """

    queue: QueueName
    identity: SampleIdentity
    response: AckResponse
    rests_on: int = 0
    attempt: int = 0
    lacks_master: bool = False


class CommandReply(msgspec.Struct, frozen=True, array_like=True, tag="reply"):
    """One answer to a command. All but the last of several carry `intermediate` [QS 5.4.6].

    `queue` is the one whose samples the command was about; empty: none.
    """

    request: SampleIdentity
    replying_service: str
    reply: Reply
    intermediate: bool = False
    queue: QueueName = ""
    rests_on: int = 0


class StatusPublication(msgspec.Struct, frozen=True, array_like=True, tag="status"):
    """The periodic status of a queue whose monitoring is on (chapter 6)."""

    queue: QueueName
    status: SharedReaderQueueStatus
    rests_on: int = 0


Inbound: TypeAlias = (
    Write | ConsumerJoined | ConsumerLeft | ConsumerAvailability | Acknowledgment | ProducerLeft | CommandRequest
)
Outbound: TypeAlias = Delivery | WriteAcknowledgment | CommandReply | StatusPublication
Message: TypeAlias = Inbound | Outbound


def is_for(message: Outbound, left: ConsumerLeft) -> TypeGuard[Delivery]:
    """Return whether a message is a delivery to a consumer that is gone."""
    return type(message) is Delivery and (message.consumer_guid, message.queue) == (left.consumer_guid, left.queue)
