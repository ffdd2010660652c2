"""A held sample and its lifecycle [QS 2.9, Table 2.1].

Decides: the states of a sample and the transitions between them. `Sample.move` and `Sample.dispatch` alone assign a
state, and take the next one from `TRANSITIONS`. The other parts of the queue decide which transitions happen, and when.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Final

import msgspec

from qsctl.core.records import DeadLetterReason
from qsctl.identity import NIL_GUID, NIL_IDENTITY, NIL_INCARNATION, Guid, Incarnation, SampleIdentity
from qsctl.instant import Nanoseconds


@unique
class SampleState(IntEnum):
    """The states of [QS 2.9]; a sample in one of the last four is not sent any more, and leaves the queue.

    `ARRIVED` is the table's <Init>. `FLUSHED` is ours: removed by a command [QS 5.4.3]. A sample that is EXPIRED or in
    FAILED_DELIVERY remains in its queue while the dead-letter queue has no room for it.
    """

    ARRIVED = 0
    ENQUEUED = 1
    ASSIGNED = 2
    SENT = 3
    REJECTED = 4
    TIMED_OUT = 5
    DELIVERED = 6
    EXPIRED = 7
    FAILED_DELIVERY = 8
    FLUSHED = 9


@unique
class Cause(IntEnum):
    """The cause of a sample's transition. Each corresponds to one row, or half a row, of [QS Table 2.1]."""

    STORE = 0
    """The sample was received and stored in the queue."""
    ASSIGN = 1
    """A consumer was chosen."""
    SEND = 2
    """The sample was sent to that consumer."""
    ACKNOWLEDGE = 3
    """A consumer that was sent the sample reported success, perhaps late."""
    REJECT = 4
    """The consumer reported failure."""
    TIME_OUT = 5
    """The consumer did not answer within `response_timeout`, or vanished: its processing is unknown."""
    RETRY = 6
    """Attempts are left (AttemptedDeliveryCount < MAX_ATTEMPTS)."""
    GIVE_UP = 7
    """No attempts are left (AttemptedDeliveryCount = MAX_ATTEMPTS)."""
    EXPIRE = 8
    """The lifespan elapsed."""
    FLUSH = 9
    """A command removed the sample."""
    RESTORE = 10
    """The service restarted; the delivery in progress is void [QS 2.14.2.1]."""
    HAND_BACK = 11
    """The consumer detached and reports that it did not process the sample."""
    DEAD_LETTER = 12
    """The dead-letter queue has room for the sample at last, or no longer exists."""


_S, _C = SampleState, Cause

TRANSITIONS: Final[dict[tuple[SampleState, Cause], SampleState]] = {
    (_S.ARRIVED, _C.STORE): _S.ENQUEUED,
    (_S.ENQUEUED, _C.ASSIGN): _S.ASSIGNED,
    (_S.ASSIGNED, _C.SEND): _S.SENT,
    (_S.SENT, _C.ACKNOWLEDGE): _S.DELIVERED,
    # A late acknowledgment retires a sample that went back to the queue and was not sent again yet.
    (_S.ENQUEUED, _C.ACKNOWLEDGE): _S.DELIVERED,
    (_S.SENT, _C.REJECT): _S.REJECTED,
    (_S.SENT, _C.TIME_OUT): _S.TIMED_OUT,
    (_S.REJECTED, _C.RETRY): _S.ENQUEUED,
    (_S.TIMED_OUT, _C.RETRY): _S.ENQUEUED,
    (_S.REJECTED, _C.GIVE_UP): _S.FAILED_DELIVERY,
    (_S.TIMED_OUT, _C.GIVE_UP): _S.FAILED_DELIVERY,
    (_S.SENT, _C.HAND_BACK): _S.ENQUEUED,
    # Fewer retries may be configured after a restart than a waiting sample has already used.
    (_S.ENQUEUED, _C.GIVE_UP): _S.FAILED_DELIVERY,
    # While they wait for room among the dead letters. A late acknowledgment means that they are not dead letters.
    **{(state, _C.DEAD_LETTER): state for state in (_S.EXPIRED, _S.FAILED_DELIVERY)},
    **{(state, _C.ACKNOWLEDGE): _S.DELIVERED for state in (_S.EXPIRED, _S.FAILED_DELIVERY)},
    **{(state, _C.FLUSH): _S.FLUSHED for state in (_S.EXPIRED, _S.FAILED_DELIVERY)},
    **{(state, _C.EXPIRE): _S.EXPIRED for state in (_S.ENQUEUED, _S.ASSIGNED, _S.SENT, _S.REJECTED, _S.TIMED_OUT)},
    **{(state, _C.FLUSH): _S.FLUSHED for state in (_S.ENQUEUED, _S.ASSIGNED, _S.SENT)},
    **{(state, _C.RESTORE): _S.ENQUEUED for state in (_S.ASSIGNED, _S.SENT, _S.REJECTED, _S.TIMED_OUT)},
}
"""[QS Table 2.1]. Any other pair is a defect of this program, and raises an error."""


_DISPATCHED: Final = {
    state: TRANSITIONS[TRANSITIONS[state, _C.ASSIGN], _C.SEND]
    for state in SampleState
    if (state, _C.ASSIGN) in TRANSITIONS
}
"""The state of a sample that was assigned to a consumer and sent to it, by its state before."""

_NEXT: Final = tuple(tuple(TRANSITIONS.get((state, cause)) for cause in Cause) for state in SampleState)
"""The same table indexed by state and cause, which takes half the time: a sample moves at least four times."""


class DeadLetterOrigin(msgspec.Struct, frozen=True, gc=False):
    """The origin of a dead letter: a sample of another queue."""

    queue: str
    """The queue from which it came, `<topic>@<subscriber>`."""
    position: int
    """Its position in that queue; 0: not recorded."""
    identity: SampleIdentity
    reason: DeadLetterReason
    incarnation: Incarnation = NIL_INCARNATION
    """The creation of that queue to which `position` belongs."""


class Sample(msgspec.Struct, gc=False):
    """One sample that a queue holds. Only its queue changes it.

    A million of them may wait at a time, so it has no garbage collector header and no reference that could close a
    cycle: consumers are identified by GUID.
    """

    position: int
    """Its position in the queue, never reused; the order of positions is the order of the queue."""
    identity: SampleIdentity
    payload: bytes | None
    """None: the payload is on disk only, and is read by `position` [QS 2.14.2]."""
    size_bytes: int
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: Guid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: Guid = NIL_GUID
    flags: int = 0
    """The producer's flags, without the bits that only the service sets."""
    dead_letter: DeadLetterOrigin | None = None
    """The origin of a dead letter; its own `identity` is derived from that, see the module `dead_letter`."""
    state: SampleState = SampleState.ARRIVED
    attempts: int = 0
    """Number of failed deliveries: AttemptedDeliveryCount."""
    redelivered: bool = False
    """Whether a consumer may have processed it already: DDS_REDELIVERED_SAMPLE."""
    holder: Guid = NIL_GUID
    """The consumer that it is assigned or sent to; nil: none."""
    sent_at_ns: Nanoseconds = 0
    """Instant at which it was sent to `holder`; 0: no consumer holds it."""
    past_holders: tuple[Guid, ...] = ()
    """Consumers whose delivery of this sample is over, latest last: they may still acknowledge it late."""

    @property
    def original_identity(self) -> SampleIdentity:
        """Return the identity that its producer gave it."""
        return self.identity if self.dead_letter is None else self.dead_letter.identity

    def spill(self) -> None:
        """Release the payload, which is stored by now."""
        self.payload = None

    def move(self, cause: Cause) -> None:
        """Change to the next state by a cause.

        Raises:
            AssertionError: `TRANSITIONS` has no transition from the present state by this cause.
        """
        following = _NEXT[self.state][cause]
        if following is None:
            raise AssertionError(f"no transition from {self.state.name} by {cause.name}: {self.identity}")
        self.state = following

    def dispatch(self) -> None:
        """Change the state by the two transitions ASSIGN and SEND, which happen in one step.

        Raises:
            AssertionError: `TRANSITIONS` has no transition from the present state by ASSIGN.
        """
        following = _DISPATCHED.get(self.state)
        if following is None:
            raise AssertionError(f"no transition from {self.state.name} by {Cause.ASSIGN.name}: {self.identity}")
        self.state = following
