"""Logs that are compacted, and replicas that lag behind what is left of them."""

from __future__ import annotations

import pytest

from qsctl.core.high_availability import compaction
from qsctl.core.high_availability._log import LogSnapshot
from qsctl.core.high_availability._progress import FRAME_BYTES_MAX, UNCONFIRMED_BYTES_MAX
from qsctl.core.high_availability._snapshot_pieces import ArrivingSnapshot, SnapshotTransfer, mark_of
from qsctl.core.high_availability.frames import Frame, Snapshot, SnapshotPiece
from qsctl.core.high_availability.roles import Role
from qsctl.core.records import Enqueued, EpochBegan
from qsctl.identity import SampleIdentity
from tests.core.high_availability.cluster import (
    STREAM,
    TIMEOUT_NS,
    WRITER,
    Cluster,
    Process,
    acknowledge,
    held,
    join,
    queue,
    write,
)
from tests.core.high_availability.version_3 import MixedCluster

LARGE = bytes(500_000)
LARGE_COUNT = 24
"""Samples of a snapshot that is larger than what may be unconfirmed."""


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


def lag_behind(cluster: Cluster) -> tuple[Process, Process]:
    """Let one replica lack large samples that are in the others' snapshot alone; return the master and that replica."""
    for process in cluster:
        process.compacted_over_count = 10
        process.start(0)
    master = cluster.elect()
    slow = next(process for process in cluster if process is not master)
    cluster.send_all(join())
    cluster.cut(slow.name)
    for number in range(1, LARGE_COUNT + 1):
        for process in cluster:
            if process is not slow:
                cluster.send(process.name, write(number, LARGE))
    for number in range(LARGE_COUNT + 1, 6 * LARGE_COUNT):
        for process in cluster:
            if process is not slow:
                cluster.send(process.name, write(number))
        cluster.run_until(lambda number=number: len(master.deliveries()) == number)  # type: ignore[misc]
        cluster.send(master.name, acknowledge(number))
    cluster.run_for(2 * TIMEOUT_NS)
    assert master.replica.log.base.index > slow.replica.log.last_index
    assert len(held(master)) == LARGE_COUNT
    return master, slow


def payload_bytes(frame: SnapshotPiece) -> int:
    return sum(len(each.payload) for each in frame.records if isinstance(each, Enqueued))


class Watched:
    """The frames to one member, of which some are lost."""

    def __init__(self, cluster: Cluster, recipient: Process) -> None:
        self._cluster, self._recipient = cluster, recipient
        self.pieces: list[SnapshotPiece] = []
        self.whole: list[Snapshot] = []

    def tick(self, *, loses: frozenset[int] = frozenset()) -> None:
        """Run the cluster on; the pieces with these numbers, in the order of sending, are lost."""
        kept: list[tuple[str, str, Frame]] = []
        for sender, recipient, frame in self._cluster.frames:
            is_watched = recipient == self._recipient.name
            if is_watched and isinstance(frame, SnapshotPiece):
                self.pieces.append(frame)
                if len(self.pieces) in loses:
                    continue
            elif is_watched and isinstance(frame, Snapshot):
                self.whole.append(frame)
            kept.append((sender, recipient, frame))
        self._cluster.frames = kept
        self._cluster.tick()

    def run_until_caught_up(self, master: Process, *, loses: frozenset[int] = frozenset()) -> None:
        slow = self._recipient
        for _ in range(1_000):
            if slow.replica.log.commit_index >= master.replica.log.base.index and held(slow) == held(master):
                return
            self.tick(loses=loses)
        raise AssertionError(f"{slow.name} did not catch up")


def test_snapshot_comes_in_bounded_pieces_and_no_more_of_them_than_may_be_unconfirmed() -> None:
    cluster = Cluster(3)
    master, slow = lag_behind(cluster)
    epoch = master.replica.epoch
    cluster.heal()
    watched = Watched(cluster, slow)
    waiting = 0
    for _ in range(1_000):
        if held(slow) == held(master):
            break
        waiting = max(
            waiting,
            sum(
                payload_bytes(each)
                for _, to, each in cluster.frames
                if to == slow.name and isinstance(each, SnapshotPiece)
            ),
        )
        watched.tick()
    assert held(slow) == held(master)
    assert watched.whole == []
    assert 0 < max(map(payload_bytes, watched.pieces)) <= FRAME_BYTES_MAX
    assert FRAME_BYTES_MAX < waiting < UNCONFIRMED_BYTES_MAX + FRAME_BYTES_MAX
    assert [each.first for each in watched.pieces] == sorted({each.first for each in watched.pieces}), "each once"
    assert (master.replica.is_master, master.replica.epoch) == (True, epoch)
    assert slow.stores[STREAM].snapshot_index == slow.replica.log.base.index


def test_transfer_of_a_snapshot_goes_on_behind_a_lost_piece() -> None:
    cluster = Cluster(3)
    master, slow = lag_behind(cluster)
    cluster.heal()
    watched = Watched(cluster, slow)
    watched.run_until_caught_up(master, loses=frozenset({1, 5, 9}))
    lost = {watched.pieces[at - 1].first for at in (1, 5, 9)}
    sent = [each.first for each in watched.pieces]
    assert all(sent.count(each) > 1 for each in lost), "it is sent again"
    assert sent.count(0) == 2
    assert sent.count(watched.pieces[2].first) == 1, "what arrived before a gap is not"


def test_transfer_of_a_snapshot_goes_on_with_a_master_that_was_restarted() -> None:
    cluster = Cluster(3, jitter=[0.0, 0.5, 0.9])
    master, slow = lag_behind(cluster)
    cluster.heal()
    watched = Watched(cluster, slow)
    while slow.replica._arriving.count < LARGE_COUNT // 2:
        watched.tick()
    first = slow.replica._arriving.count
    master.crash()
    master.start(cluster.now)
    for process in cluster:
        if process not in (master, slow):
            process.crash()
            process.start(cluster.now)
    cluster.run_until(lambda: cluster.masters() == [master.name])
    again = Watched(cluster, slow)
    again.run_until_caught_up(cluster[cluster.masters()[0]])
    sent = [each.first for each in again.pieces if each.first]
    assert sent
    assert min(sent) >= first, "only the first piece is sent again, by which the replica reports what it has"


def test_a_transfer_ends_though_the_log_of_the_master_is_compacted_meanwhile() -> None:
    cluster = Cluster(3)
    master, slow = lag_behind(cluster)
    cluster.heal()
    watched = Watched(cluster, slow)
    number = 6 * LARGE_COUNT
    base_index = master.replica.log.base.index
    while slow.replica._arriving.count < LARGE_COUNT // 2:
        watched.tick()
    cluster.cut(slow.name)
    while master.replica.log.base.index == base_index:
        for process in cluster:
            if process is not slow:
                cluster.send(process.name, write(number))
        cluster.run_for(TIMEOUT_NS // 10)
        cluster.send(master.name, acknowledge(number))
        number += 1
    cluster.heal()
    count = slow.replica._arriving.count
    assert count >= LARGE_COUNT // 2
    watched = Watched(cluster, slow)
    watched.run_until_caught_up(master)
    indexes = [each.index for each in watched.pieces]
    assert indexes[0] == base_index, "the transfer that began goes on"


@pytest.mark.parametrize("is_slow_earlier", [True, False])
def test_only_members_that_understand_pieces_are_sent_some(is_slow_earlier: bool) -> None:
    cluster = MixedCluster(3, set())
    master, slow = lag_behind(cluster)
    cluster.of_version_3 = {slow.name} if is_slow_earlier else {each.name for each in cluster if each is not slow}
    for process in cluster:
        process.member.versions._noted.clear()  # as if they had been upgraded or downgraded by a restart
    cluster.of_version_3 -= {master.name}
    cluster.heal()
    watched = Watched(cluster, slow)
    watched.run_until_caught_up(master)
    assert bool(watched.whole) == is_slow_earlier
    assert bool(watched.pieces) != is_slow_earlier
    assert cluster.dropped == []


def enqueued(position: int) -> Enqueued:
    return Enqueued(STREAM, position, SampleIdentity(WRITER, position), 0, 0, payload=b"sample")


def piece(first: int, *positions: int, count: int = 5, mark: int = 7, index: int = 9) -> SnapshotPiece:
    return SnapshotPiece(STREAM, "a", 1, index, 1, count, mark, first, tuple(map(enqueued, positions)), 0)


def test_pieces_of_two_snapshots_are_never_mixed() -> None:
    arriving = ArrivingSnapshot()
    assert arriving.add(piece(0, 1, 2))
    assert not arriving.add(piece(3, 4))
    assert arriving.add(piece(1, 2, 3)), "a part of it is here already"
    assert arriving.count == 3
    assert not arriving.add(piece(3, 4, 5, mark=8)), "of another snapshot, of which nothing is here"
    assert arriving.count == 0
    assert arriving.add(piece(0, *range(1, 6)))
    assert [each.position for each in arriving.pop_whole() or ()] == [1, 2, 3, 4, 5]  # type: ignore[union-attr]
    assert arriving.pop_whole() is None
    assert mark_of([enqueued(1), enqueued(2)]) != mark_of([enqueued(2), enqueued(1)])


def test_unconfirmed_pieces_are_sent_again_after_master_timeout_and_not_before() -> None:
    records = (EpochBegan(STREAM, 1, "a", flags_all=False), *(enqueued(at) for at in range(1, 2_000)))
    transfer = SnapshotTransfer(LogSnapshot(9, 1, records), TIMEOUT_NS)
    assert [first for first, _ in transfer.pieces(0)] == [0], "one, until it is known what the replica has"
    assert list(transfer.pieces(TIMEOUT_NS - 1)) == []
    assert [first for first, _ in transfer.pieces(TIMEOUT_NS)] == [0]
    transfer.confirm(TIMEOUT_NS, 512, TIMEOUT_NS, has_gap=False)
    assert [first for first, _ in transfer.pieces(TIMEOUT_NS)] == [512, 1_024, 1_536]
    transfer.confirm(TIMEOUT_NS + 1, 1_024, TIMEOUT_NS, has_gap=False)
    transfer.confirm(TIMEOUT_NS + 2, 1_024, TIMEOUT_NS, has_gap=True)
    assert [first for first, _ in transfer.pieces(TIMEOUT_NS + 2)] == [1_024, 1_536]
    transfer.confirm(TIMEOUT_NS + 3, 1_024, TIMEOUT_NS, has_gap=True)
    assert list(transfer.pieces(TIMEOUT_NS + 3)) == [], "the answer to a piece before the repetition"


def test_a_master_compacts_by_no_state_that_it_had_in_an_earlier_epoch() -> None:
    cluster = compacting()
    first = cluster.elect()
    cluster.send_all(join())
    for number in range(1, 4):
        cluster.send_all(write(number))
        cluster.run_for(TIMEOUT_NS // 5)
        cluster.send_all(acknowledge(number))
    cluster.run_until(lambda: not any(map(held, cluster)))
    cluster.cut(first.name)
    for number in (11, 12):
        cluster.send(first.name, write(number))  # its state with them is kept for a compaction; they are taken back
    cluster.run_until(lambda: set(cluster.masters()) - {first.name} and not first.replica.is_master)
    (second,) = (cluster[name] for name in cluster.masters())
    cluster.heal()
    cluster.send(second.name, write(21))
    cluster.run_until(lambda: len({tuple(map(str, held(process))) for process in cluster}) == 1)
    second.crash()
    assert cluster.elect() is first
    for number in range(31, 35):
        cluster.send_all(join(), write(number))
        cluster.run_for(TIMEOUT_NS // 5)
        cluster.send_all(acknowledge(number), acknowledge(21))
    assert first.replica.log.base.index > 0, "it is compacted"
    second.start(cluster.now, is_lost=True)
    cluster.run_until(lambda: second.replica.role is Role.SLAVE)
    assert held(second) == held(first) == []
