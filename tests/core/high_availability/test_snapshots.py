"""Logs that are compacted, and replicas that lag behind what is left of them."""

from __future__ import annotations

import pytest

from qsctl.core.high_availability import compaction
from qsctl.core.high_availability._log import LogSnapshot
from qsctl.core.high_availability.frames import Snapshot
from tests.core.high_availability.cluster import TIMEOUT_NS, Cluster, acknowledge, held, join, queue, write


def compacting(size: int = 3, **given: bool) -> Cluster:
    cluster = Cluster(size, queue(instances=size, **given))
    for process in cluster:
        process.compacted_over_count = 10
        process.start(0)
    return cluster


def test_a_log_is_compacted_and_a_restart_takes_up_the_snapshot() -> None:
    cluster = compacting()
    master = cluster.elect()
    cluster.send_all(join())
    for number in range(1, 40):
        cluster.send_all(write(number))
        cluster.run_until(lambda number=number: len(master.deliveries()) == number)  # type: ignore[misc]
        if number != 5:
            cluster.send_all(acknowledge(number))
    cluster.run_until(lambda: all(held(process) == ["5 sent"] for process in cluster))
    for process in cluster:
        assert process.replica.log.base.index > 50
        assert len(process.replica.log) < 40
        assert process.stores[process.replica.stream].snapshot_index == process.replica.log.base.index
    slave = next(process for process in cluster if process is not master)
    last = slave.replica.log.last
    slave.crash()
    slave.start(cluster.now)
    assert slave.replica.log.last == last
    cluster.run_until(lambda: held(slave) == ["5 sent"])
    cluster.send_all(write(7, attempt=2))
    cluster.run_for(TIMEOUT_NS)
    assert all(held(process) == ["5 sent"] for process in cluster), "identities are in snapshots"


def test_a_replica_that_lags_behind_the_log_gets_a_snapshot() -> None:
    cluster = compacting()
    master = cluster.elect()
    cluster.send_all(join())
    slow = next(process for process in cluster if process is not master)
    cluster.cut(slow.name)
    for number in range(1, 40):
        cluster.send(master.name, write(number))
        cluster.run_until(lambda number=number: len(master.deliveries()) == number)  # type: ignore[misc]
        cluster.send(master.name, acknowledge(number))
    cluster.run_for(TIMEOUT_NS // 2)
    assert master.replica.log.base.index > slow.replica.log.last_index
    cluster.heal()
    cluster.run_until(lambda: slow.replica.log.commit_index == master.replica.log.commit_index)
    assert slow.replica.log.base.index > 0
    assert slow.stores[slow.replica.stream].snapshot_index == slow.replica.log.base.index
    slow.crash()
    slow.start(cluster.now)
    cluster.run_until(lambda: held(slow) == held(master))


def test_a_late_snapshot_throws_away_nothing_that_was_confirmed() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(write(1), write(2), write(3))
    cluster.run_until(lambda: all(len(held(process)) == 3 for process in cluster))
    slave = next(process for process in cluster if process is not master)
    cluster.cut(slave.name)
    last_index = slave.replica.log.last_index
    late = LogSnapshot(2, 1, master.replica.follower.snapshot(1, 0))
    slave.replica.log.commit_index = 1
    frame = Snapshot(slave.replica.stream, master.name, 1, late.index, late.epoch, tuple(late.records), cluster.now)
    slave.run(cluster.now, frames=[frame])
    assert slave.replica.log.last_index == last_index
    assert len(held(slave)) == 3


def test_a_masters_state_is_kept_for_compaction_only_once_it_is_committed() -> None:
    cluster = compacting()
    master = cluster.elect()
    cluster.cut(master.name)
    for number in range(1, 30):
        cluster.send(master.name, write(number))
    assert master.replica.log.base.index == 0
    cluster.heal()
    cluster.run_until(lambda: len(master.answers()) == 29 or not master.replica.is_master)
    cluster.run_for(TIMEOUT_NS)
    assert len({tuple(held(process)) for process in cluster}) == 1


def test_a_log_with_much_payload_is_compacted_before_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "COMPACTED_OVER_BYTES", 10_000)
    cluster = Cluster()
    for process in cluster:
        process.start(0)
    master = cluster.elect()
    cluster.send_all(join())
    bases = {process.name: {0} for process in cluster}
    for number in range(1, 41):
        cluster.send_all(write(number, b"x" * 1_000))
        cluster.run_until(lambda number=number: len(master.deliveries()) == number)  # type: ignore[misc]
        cluster.send_all(acknowledge(number))
        for process in cluster:
            bases[process.name].add(process.replica.log.base.index)
    assert {name: len(each) for name, each in bases.items()} == dict.fromkeys(bases, 1 + 3), "each 10,000 octets"
