"""What an operator sees of a replica [QS 7.1]: its role, and what its master knows of the others.

Decides: which replica counts as up to date: one that has a vote, was heard of within `master_timeout`, and holds every
entry that is committed.
"""

from __future__ import annotations

from qsctl.core.high_availability.replica import Replica
from qsctl.core.statistics.status import ReplicationStatus
from qsctl.instant import Nanoseconds


def status_of(replica: Replica, now: Nanoseconds, replica_count: int, note: str = "") -> ReplicationStatus:
    """Return the state of a replica.

    Args:
        replica: whose it is.
        now: the instant.
        replica_count: how many there are, as configured.
        note: what the driver has to say beside the reason of the role; empty: nothing.
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
        has_quorum = not replica.has_lost_master(now)
    reason = replica.reason
    return ReplicationStatus(
        role=replica.role.value,
        epoch=replica.epoch,
        master=replica.master,
        replica_count=replica_count,
        quorum_count=replica.quorum,
        up_to_date_count=up_to_date_count,
        has_quorum=has_quorum,
        lag_count=lag_count,
        last_index=log.last_index,
        commit_index=log.commit_index,
        reason=f"{reason}; {note}" if note else reason,
    )
