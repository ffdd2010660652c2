"""Forged frames: those that a process in the same DDS domain can send without the cluster's key [QS 7.1].

Decides the frames of a stranger, each of which a replica can recognize and refuse. A stranger that can forge all of a
member's frames is not simulated: the cluster's key protects against it.
"""

from __future__ import annotations

from random import Random
from typing import Final

from qsctl.core.high_availability.frames import Canvass, Confirmed, Entries, Frame, Roll, Vote
from qsctl.core.records import EpochBegan
from qsctl.identity import Incarnation
from qsctl.instant import Nanoseconds
from qsctl.sim.world.faults.vocabulary import Forgery
from qsctl.transport.dds.replicas.letter_box import Seen
from qsctl.transport.dds.replicas.replica_letters import LETTER_FORMAT, Letter, pieces_of

EPOCH_NEVER_REACHED: Final = 2**53
OUTSIDER: Final = "outsider"
NEVER_DRAWN: Final = Incarnation(2**62 + 1)
"""The incarnation of a group that does not exist."""
_MANY_ENTRIES: Final = 2**40


def forged(
    kind: Forgery, stream: str, receiver: str, other: str, epoch: int, now: Nanoseconds, incarnation: int
) -> list[Frame]:
    """Return the frames that a stranger sends to a member; empty if this kind needs a group and the member has none.

    Args:
        kind: the kind of forgery.
        stream: the stream whose replicas the frames concern.
        receiver: the member's name.
        other: the name of another member, in whose name most kinds are sent.
        epoch: the receiver's epoch.
        now: the instant.
        incarnation: that of the receiver's replication group; 0 or less if it has none yet.
    """
    far = EPOCH_NEVER_REACHED
    match kind:
        case Forgery.HEARTBEAT:
            return [Entries(stream, other, epoch, 0, 0, (), 0, now, incarnation=incarnation)]
        case Forgery.TRIAL:
            return [Canvass(stream, other, far, far + 1, far, _MANY_ENTRIES, True, incarnation)]
        case Forgery.JUMP:
            return [Confirmed(stream, other, far, now, _MANY_ENTRIES, now, incarnation=incarnation)]
        case Forgery.OUTSIDER:
            return [Vote(stream, OUTSIDER, epoch + 1, epoch + 1, False, True, incarnation)]
        case Forgery.GARBAGE:
            return [Entries(stream, other, epoch, 0, 0, (), 0, now, incarnation=incarnation)]
        case Forgery.NAMESAKE:
            return [
                Roll(stream, receiver, epoch, now, 0, 0, True, incarnation=incarnation),
                Canvass(stream, receiver, epoch, epoch + 1, epoch, _MANY_ENTRIES, True, incarnation),
            ]
        case Forgery.ANOTHER_GROUP if incarnation <= 0:
            return []  # it has no group yet, and follows the first: only the key of the cluster helps there
        case Forgery.ANOTHER_GROUP:
            began = EpochBegan(stream, epoch + 1, other, flags_all=True, incarnation=NEVER_DRAWN)
            return [
                Entries(stream, other, epoch + 1, 0, 0, (began,), 1, now, incarnation=NEVER_DRAWN),
                Canvass(stream, other, epoch + 1, epoch + 1, epoch, _MANY_ENTRIES, False, NEVER_DRAWN),
            ]


def letter_of(seen: Seen, frame: Frame, random: Random, *, is_garbled: bool) -> list[bytes]:
    """Return the datagrams of a message with one frame, sent by the process `seen`; if garbled, with altered octets."""
    number = random.getrandbits(32)
    datagrams = list(pieces_of(Letter(LETTER_FORMAT, (), (frame,)), seen.name, seen.run, number))
    if not is_garbled:
        return datagrams
    garbled = bytearray(datagrams[0])
    for _ in range(random.randint(1, 4)):
        garbled[random.randrange(4, len(garbled))] = random.getrandbits(8)
    return [bytes(garbled), random.randbytes(random.randint(0, 200))]
