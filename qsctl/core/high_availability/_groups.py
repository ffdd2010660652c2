"""The replication group of a replica: a name may be given again to another queue [QS 5.4.1 and 5.4.2].

A group is its incarnation. CREATE gives it: all members of a cluster receive the same request, and without a log before
them such replicas may vote at once, since no replica can have confirmed an entry of that group before. Where no command
created the queue, the first master draws it; it is written with the entry by which each epoch begins, and agreed once
one of these is committed. From then on it is part of a replica's durable state, of all its frames and of snapshots.

A frame of another group has no effect. A replica learns that it is in the wrong group from the answers to its own
questions: the group that a quorum of the members has agreed upon is right. Where none has a quorum, as with two members
or while others are gone, a group that another member left, because a command deleted the queue there, is replaced by
the one that this member has now; and a log that cannot be committed, since too few members can have it, is replaced by
one that may be. Where that decides nothing, for a member was new when the command deleted the queue there, an
operator's command does: the group continues that most of the answering members have, among equals that with the longest
log. A replica that changes the group begins with an empty log. It has a vote, unless it was in that group before and
has lost its votes there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability._members import quorum_of
from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.frames import Canvass, Frame, Roll
from qsctl.identity import INCARNATION_MAX, NIL_GUID, NIL_INCARNATION, Incarnation, SampleIdentity

EARLIER: Final = INCARNATION_MAX
"""In the place of the incarnation of a group: its log was written by a version that recorded none."""


def incarnation_of_request(request: SampleIdentity) -> Incarnation:
    """Return the incarnation of what a request creates, the same at all its receivers; nil: it has no identity."""
    if request.writer_guid == NIL_GUID:
        return NIL_INCARNATION
    return _incarnation(request.writer_guid + request.sequence_number.to_bytes(8))


def incarnation_of_entry(origin: str, index: int) -> Incarnation:
    """Return the incarnation of what an entry of the configuration's log creates."""
    return _incarnation(f"{origin}\0{index}".encode())


def _incarnation(octets: bytes) -> Incarnation:
    drawn = int.from_bytes(blake2b(octets, digest_size=8).digest()) & INCARNATION_MAX
    return Incarnation(drawn % EARLIER or 1)


def incarnation_of(state: HardState, log: ReplicatedLog) -> int:
    """Return a replica's group, as its frames carry it: 0 where it has none, negative where it is not agreed."""
    if state.incarnation:
        return state.incarnation
    return -(log.incarnation_at(log.last_index) or EARLIER) if log.last_index else 0


def is_of_another_group(own: int, frame: Frame) -> bool:
    """Return whether a frame cannot be of a replica's group; `own` is the incarnation that the replica's own frames
    carry.

    One that has nothing yet may follow any, but gets no vote in a group that has an incarnation: it would draw another.
    Where neither is agreed, the epochs alone decide, as within one group.
    """
    theirs = frame.incarnation
    if abs(own) == abs(theirs):
        return False
    if not own or not theirs:
        return own > 0 and isinstance(frame, Canvass)
    return own > 0 or theirs > 0


def right_group(own: int, left: Sequence[int], member_count: int, rolls: Sequence[Roll]) -> int:
    """Return the incarnation of the group that a replica belongs to, by the answers of others; its own: it is in it."""
    if not own:
        return own  # it has nothing, and follows any
    quorum = quorum_of(member_count)
    agreed = Counter(roll.incarnation for roll in rolls if roll.incarnation > 0)
    if own > 0:
        agreed[own] += 1
    for incarnation, count in agreed.items():
        if count >= quorum:
            return incarnation
    if own > 0:
        gives_way = any(own in roll.left for roll in rolls)
    else:  # a master may have committed what this replica knows no commit of, unless a quorum cannot have it
        gives_way = member_count - sum(not is_of_group(own, roll) for roll in rolls) < quorum
    others = [each for each in agreed if each != abs(own) and each not in left]
    return others[0] if gives_way and others else own


def is_of_group(own: int, roll: Roll) -> bool:
    """Return whether a replica may be of the group of one whose incarnation is `own`, or follow it."""
    theirs = roll.incarnation
    return not own or not theirs or abs(own) == abs(theirs) or (own < 0 and theirs < 0)


def group_with_most(own: int, own_left: Sequence[int], own_count: int, rolls: Sequence[Roll]) -> int:
    """Return the group of most of the replicas, among equals that with the longest log; 0: none has an incarnation.

    One that a member left is taken only where there is no other.

    Args:
        own: the incarnation of the replica that asks.
        own_left: the groups that it left.
        own_count: the entries of its log.
        rolls: the answers of the others.
    """
    member_counts: Counter[int] = Counter()
    entry_counts: dict[int, int] = {}
    for incarnation, entry_count in ((own, own_count), *((each.incarnation, each.last_index) for each in rolls)):
        group = abs(incarnation)
        if group not in (0, EARLIER):
            member_counts[group] += 1
            entry_counts[group] = max(entry_count, entry_counts.get(group, 0))
    left = {*own_left, *(group for roll in rolls for group in roll.left)}
    return max(
        member_counts, key=lambda each: (each not in left, member_counts[each], entry_counts[each], each), default=0
    )
