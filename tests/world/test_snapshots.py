"""Snapshots in pieces between simulated services: over a lossy network, with members that lose their disks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qsctl.core.high_availability.frames import SnapshotPiece
from qsctl.core.high_availability.replica import Replica
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.scenario.scenario import Scenario, UniformSize
from qsctl.sim.world.results.verdict import judge
from tests.world import kinds

LARGE = UniformSize(150_000, 300_000)


def large_snapshots(seed: int) -> Scenario:
    """Three replicas that compact their logs while they hold large samples, most of which are rejected at first."""
    return kinds.world(
        kinds.replicated(3), seed=seed, horizon_ns=9 * SECOND_NS, recovery_ns=6 * SECOND_NS, rate=8.0, rejects=0.6,
        sizes=LARGE, loss=0.03, duplication=0.03, compact_records=12,
    )  # fmt: skip


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("seed", [4, 10, 11])
def test_snapshots_that_arrive_in_pieces_break_no_rule(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    gather = Replica._gather

    def watched(replica: Replica, now: Nanoseconds, piece: SnapshotPiece) -> Any:
        before = replica.log.base.index
        counts["behind the first"] += piece.first > 0
        reason = gather(replica, now, piece)
        counts["whole"] += replica.log.base.index > before and piece.first > 0
        return reason

    monkeypatch.setattr(Replica, "_gather", watched)
    judged = judge(large_snapshots(seed))
    assert judged.broken() == []
    assert counts["behind the first"] > counts["whole"] > 0
