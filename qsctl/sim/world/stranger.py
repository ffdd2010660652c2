"""Frames that no member sent: what somebody in the same domain can send without a key [QS 7.1].

Decides what a stranger says. It is such that a replica can refuse it for what it is; who can forge everything that a
member sends is not simulated: that is what the key of a cluster is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qsctl.core.high_availability.frames import Canvass, Confirmed, Entries, Frame, Roll, Vote
from qsctl.instant import Nanoseconds
from qsctl.sim.world.vocabulary import Forgery

EPOCH_NEVER_REACHED: Final = 2**53
OUTSIDER: Final = "outsider"
_MANY_ENTRIES: Final = 2**40


def forged(
    kind: Forgery, stream: str, receiver: str, others: Sequence[str], epoch: int, now: Nanoseconds
) -> list[Frame]:
    """Return what a stranger sends to a member.

    Args:
        kind: what it is.
        stream: of which replicas.
        receiver: the member's name.
        others: the names of the other members, whose names are used.
        epoch: in which the receiver is.
        now: the instant.
    """
    far = EPOCH_NEVER_REACHED
    match kind:
        case Forgery.HEARTBEAT:
            return [Entries(stream, other, epoch, 0, 0, (), 0, now) for other in others[:1]]
        case Forgery.TRIAL:
            return [Canvass(stream, other, far, far + 1, far, _MANY_ENTRIES, True) for other in others[:1]]
        case Forgery.JUMP:
            return [Confirmed(stream, other, far, now, _MANY_ENTRIES, now) for other in others[:1]]
        case Forgery.OUTSIDER:
            return [Vote(stream, OUTSIDER, epoch + 1, epoch + 1, False, True)]
        case Forgery.NAMESAKE:
            return [
                Roll(stream, receiver, epoch, now, 0, 0, True),
                Canvass(stream, receiver, epoch, epoch + 1, epoch, _MANY_ENTRIES, True),
            ]
