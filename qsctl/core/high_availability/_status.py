"""The status of a replica for operators [QS 7.1]: its role, and its master's view of the others.

Decides: which replica counts as up to date: one that has a vote, sent a frame within `master_timeout`, and has every
committed entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import structs

from qsctl.core.high_availability.replica import DISK_HANGS, Replica
from qsctl.core.messages import CommandReply, Outbound, StatusPublication
from qsctl.core.statistics.status import ReplicationStatus, SharedReaderQueueStatus
from qsctl.instant import Nanoseconds

WITH_STATUS: Final = frozenset({CommandReply, StatusPublication})
"""The messages that may have the status of a queue."""


def with_replication(message: Outbound, statuses: Callable[[], Mapping[str, ReplicationStatus]]) -> Outbound:
    """Complete the status of a replicated queue with its replica's; `statuses` gives that by the queue's full name."""
    if isinstance(message, StatusPublication):
        replication = statuses().get(message.queue)
        if replication is not None:
            return structs.replace(message, status=structs.replace(message.status, replication=replication))
    elif isinstance(message, CommandReply) and isinstance(message.reply.body, SharedReaderQueueStatus):
        status = message.reply.body
        replication = statuses().get(status.queue_name)
        if replication is not None:
            body = structs.replace(status, replication=replication)
            return structs.replace(message, reply=structs.replace(message.reply, body=body))
    return message


def status_of(replica: Replica, now: Nanoseconds, note: str = "") -> ReplicationStatus:
    """Return the state of a replica.

    Args:
        replica: the replica.
        now: the instant.
        note: the driver's note beside the reason of the role; empty: nothing.
    """
    log, mastery = replica.log, replica.mastery
    up_to_date_count, lag_count, has_quorum = 0, log.last_index - log.commit_index, False
    if mastery is not None:
        present = mastery.present(now)
        holding = [peer for peer in present if not peer.is_learner and peer.match_index >= log.commit_index]
        up_to_date_count = 1 + len(holding)
        has_quorum = mastery.has_quorum(now)
        lag_count = log.last_index - min((peer.match_index for peer in mastery.progress), default=log.last_index)
    elif replica.master:
        has_quorum = not replica.allegiance.has_lost_master(now)
    reasons = dict.fromkeys((replica.reason, DISK_HANGS if replica.disk.hangs else "", replica.lack(now), note))
    reason = "; ".join(each for each in reasons if each)
    return ReplicationStatus(
        role=replica.role.value,
        epoch=replica.epoch,
        master=replica.master,
        replica_count=len(replica.members.voters),
        quorum_count=replica.members.quorum,
        up_to_date_count=up_to_date_count,
        has_quorum=has_quorum,
        lag_count=lag_count,
        last_index=log.last_index,
        commit_index=log.commit_index,
        reason=reason,
    )
