"""The status of a replica for operators [QS 7.1]: its role, and a row for each member of its group.

Decides: which figures of the other members a replica has, and which member counts as up to date: one that has a vote,
sent a frame within `master_timeout`, and has every committed entry. A figure that no letter contained is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import structs

from qsctl.core.high_availability._mastery import Mastery
from qsctl.core.high_availability._progress import NEVER_NS, Peer
from qsctl.core.high_availability.replica import DISK_HANGS, Replica
from qsctl.core.high_availability.roles import Role
from qsctl.core.high_availability.versions import VERSION
from qsctl.core.messages import CommandReply, Outbound, StatusPublication
from qsctl.core.statistics.status import (
    MEMBERS_MAX,
    Counters,
    MemberStatus,
    ReplicationStatus,
    SharedReaderQueueStatus,
    StatisticMetrics,
    StatisticVariable,
)
from qsctl.instant import Nanoseconds

WITH_STATUS: Final = frozenset({CommandReply, StatusPublication})
"""The messages that may have the status of a queue."""


def with_replication(message: Outbound, status: Callable[[str], ReplicationStatus | None]) -> Outbound:
    """Complete the status of a replicated queue with its replica's; `status` returns that by the queue's full name."""
    if isinstance(message, StatusPublication):
        replication = status(message.queue)
        if replication is not None:
            return structs.replace(message, status=structs.replace(message.status, replication=replication))
    elif isinstance(message, CommandReply) and isinstance(message.reply.body, SharedReaderQueueStatus):
        body = message.reply.body
        replication = status(body.queue_name)
        if replication is not None:
            body = structs.replace(body, replication=replication)
            return structs.replace(message, reply=structs.replace(message.reply, body=body))
    return message


def configuration_status(replica: Replica, now: Nanoseconds, note: str) -> SharedReaderQueueStatus:
    """Return the state of the replica of the configuration, in the status of a queue that has no samples."""
    figures = StatisticVariable(StatisticMetrics(0))
    return SharedReaderQueueStatus(
        replica.stream,
        Counters(),
        Counters(),
        *(0, 0, 0, 0),
        *(figures, figures, figures, figures),
        replication=status_of(replica, now, note),
    )


def status_of(replica: Replica, now: Nanoseconds, note: str = "") -> ReplicationStatus:
    """Return the state of a replica.

    Args:
        replica: the replica.
        now: the instant.
        note: the driver's note beside the reason of the role; empty: nothing.
    """
    log, mastery, members = replica.log, replica.mastery, replica.members
    heard_at_ns = replica.allegiance.latest_sign_at_ns if mastery is None else mastery.progress.quorum_heard_at_ns()
    up_to_date_count, lag_count, has_quorum = 0, log.last_index - log.commit_index, False
    if mastery is not None:
        holding = [
            peer
            for peer in mastery.present(now)
            if members.is_voter(peer.name) and not peer.is_learner and peer.match_index >= log.commit_index
        ]
        up_to_date_count = members.is_voter(replica.name) + len(holding)
        has_quorum = mastery.has_quorum(now)
        lag_count = log.last_index - min((peer.match_index for peer in mastery.progress), default=log.last_index)
    elif replica.master:
        has_quorum = not replica.allegiance.has_lost_master(now)
    behind_ns = None if heard_at_ns is None else max(1, now - heard_at_ns)
    removed = "" if members.has_self else members.description  # before long its role is due to a master's silence
    hangs = DISK_HANGS if replica.disk.hangs else ""
    reasons = dict.fromkeys((removed, replica.reason, hangs, replica.lack(now), note))
    reason = "; ".join(each for each in reasons if each)
    return ReplicationStatus(
        role=replica.role.value,
        epoch=replica.epoch,
        master=replica.master,
        replica_count=len(members.voters),
        quorum_count=members.quorum,
        up_to_date_count=up_to_date_count,
        has_quorum=has_quorum,
        lag_count=lag_count,
        last_index=log.last_index,
        commit_index=log.commit_index,
        reason=reason,
        members=_members(replica, now),
        group=replica.stream,
        is_current=mastery is not None and behind_ns is not None and behind_ns <= replica.master_timeout_ns // 2,
        behind_ns=behind_ns,
    )


def _members(replica: Replica, now: Nanoseconds) -> tuple[MemberStatus, ...]:
    latest = replica.members.latest
    names = sorted((*latest.voters, *latest.learners))[:MEMBERS_MAX]
    return tuple(_member(replica, now, name) for name in names)


def _member(replica: Replica, now: Nanoseconds, name: str) -> MemberStatus:
    is_voter, mastery = replica.members.is_voter(name), replica.mastery
    if name == replica.name:
        return MemberStatus(
            name,
            is_voter,
            replica.role.value,
            replica.outgoing.durable_index,
            replica.follower.applied_index,
            lag_count=0 if mastery is not None else None,
            lag_bytes=0 if mastery is not None else None,
            lag_ns=0 if mastery is not None else None,
            silent_ns=0,
            version=VERSION,
            disk=_disk(replica, replica.disk.hangs),
            master_priority=replica.preferences.own.priority,
            is_witness=replica.members.is_witness(name),
        )
    known = MemberStatus(
        name,
        is_voter,
        version=replica.versions.noted(name),
        disk=_disk(replica, None),
        master_priority=replica.preferences.announced_priority(now, name),
        is_witness=replica.members.is_witness(name),
    )
    peer = mastery.progress.get(name) if mastery is not None else None
    if mastery is not None and peer is not None and peer.has_confirmed:
        return _confirmed(replica, mastery, peer, now, known)
    heard_at_ns = replica.allegiance.heard_at_ns
    if name == replica.master and heard_at_ns is not None:
        return structs.replace(known, role=Role.MASTER.value, silent_ns=now - heard_at_ns)
    return known


def _confirmed(replica: Replica, mastery: Mastery, peer: Peer, now: Nanoseconds, known: MemberStatus) -> MemberStatus:
    """Return the row of a replica that has confirmed something to this master."""
    log = replica.log
    role = Role.SLAVE if known.is_voter and not peer.is_learner else Role.LEARNER
    if peer.match_index >= log.commit_index:
        lag_ns: Nanoseconds | None = 0
    else:
        lag_ns = None if peer.level_at_ns == NEVER_NS else now - peer.level_at_ns
    silent_ns = now - peer.heard_at_ns
    return structs.replace(
        known,
        role=role.value if silent_ns <= replica.master_timeout_ns else "",
        master_priority=known.master_priority or 0,
        durable_index=peer.match_index,
        applied_index=peer.applied_index,
        lag_count=log.last_index - peer.match_index,
        lag_bytes=mastery.octets.of(peer.match_index),
        lag_ns=lag_ns,
        silent_ns=silent_ns,
        disk=_disk(replica, peer.disk_hangs),
    )


def _disk(replica: Replica, hangs: bool | None) -> str:
    if not replica.is_persistent:
        return "none"
    return "" if hangs is None else "hangs" if hangs else "ok"
