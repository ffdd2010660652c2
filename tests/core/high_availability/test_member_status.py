"""What the status of a replica contains about each member of its group."""

from __future__ import annotations

from msgspec import structs

from qsctl.core.high_availability._octets_behind import OctetsBehind
from qsctl.core.high_availability._progress import Peer
from qsctl.core.high_availability.versions import VERSION
from qsctl.core.statistics.status import MemberStatus, ReplicationStatus
from tests.core.high_availability.changed_cluster import ADD, REMOVE, Changed, filled
from tests.core.high_availability.cluster import STEP_NS, STREAM, TIMEOUT_NS, Process, held, queue, write
from tests.core.high_availability.logs import began, enqueued, log_of
from tests.core.high_availability.version_3 import MixedCluster


def status(process: Process) -> ReplicationStatus:
    found = process.member.status(STREAM)
    assert found is not None
    return found


def row(process: Process, name: str) -> MemberStatus:
    return next(each for each in status(process).members if each.name == name)


def test_only_voters_count_as_up_to_date() -> None:
    cluster, master, (dead, _) = filled()
    cluster.join("d")
    cluster.change(master, ADD, "d")
    dead.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    found = status(master)
    assert (found.up_to_date_count, found.replica_count, found.learner_count) == (2, 3, 1)


def test_removed_member_states_that_it_was_removed() -> None:
    cluster, master, (removed, other) = filled()
    cluster.change(master, REMOVE, removed.name)
    cluster.run_for(5 * TIMEOUT_NS)
    assert status(removed).reason.startswith("it was removed from the group")
    assert [status(each).has_member(removed.name) for each in (master, other, removed)] == [False, False, False]
    assert status(removed).has_member(master.name)
    assert "removed" not in status(other).reason


def test_master_reports_each_member_that_is_level() -> None:
    cluster, master, others = filled()
    joined = cluster.join("d")
    cluster.change(master, ADD, "d")
    cluster.run_for(2 * TIMEOUT_NS)
    last_index = master.replica.log.last_index
    assert [each.name for each in status(master).members] == ["a", "b", "c", "d"]
    for process in (master, *others, joined):
        found = row(master, process.name)
        assert found.role == process.replica.role.value
        assert found.is_voter is (process is not joined)
        assert (found.durable_index, found.applied_index) == (last_index, last_index)
        assert (found.lag_count, found.lag_bytes, found.lag_ns) == (0, 0, 0)
        assert found.silent_ns is not None
        assert found.silent_ns <= TIMEOUT_NS // 2
        assert (found.version, found.disk) == (VERSION, "ok")


def test_lag_of_a_member_that_is_away_grows_in_entries_octets_and_seconds() -> None:
    cluster, master, (away, other) = filled()
    cluster.run_for(TIMEOUT_NS)
    away.crash()
    at = cluster.now
    cluster.send_all(write(8, b"x" * 70), write(9, b"y" * 30))
    cluster.run_until(lambda: len(held(other)) == 5)
    cluster.run_for(3 * TIMEOUT_NS)
    found = row(master, away.name)
    assert (found.lag_count, found.lag_bytes) == (2, 100)
    assert found.durable_index == master.replica.log.last_index - 2
    elapsed_ns = cluster.now - at
    for age_ns in (found.lag_ns, found.silent_ns):
        assert age_ns is not None
        assert elapsed_ns - STEP_NS <= age_ns <= elapsed_ns + TIMEOUT_NS // 2
    assert found.role == "", "whether it still is a slave is unknown"


def test_octets_behind_are_those_of_the_entries_that_no_snapshot_covers() -> None:
    log = log_of(began(1))
    behind = OctetsBehind(log)
    sizes = {1: 0}
    for index in range(2, 12):
        sizes[index] = index if index % 3 else 0
        log.append([structs.replace(enqueued(index), payload=b"x" * index) if sizes[index] else began(index)])
        log.commit(index)
        if index in (5, 10):
            log.compact(index - 1, ())
        for since in range(index + 1):
            wanted = sum(size for at, size in sizes.items() if at > since)
            assert behind.of(since) == (wanted if since >= log.base.index else None), (index, since)
    log.compact(11, ())
    assert (behind.of(10), behind.of(11)) == (None, 0)


def test_lag_in_seconds_is_that_of_what_is_lacking_however_long_the_load_lasts() -> None:
    peer = Peer("b", 1, 0)
    for now in range(1, 1000):
        peer.match_index = 10 * (now - 3)  # it confirms what was committed three instants ago
        peer.note_level(now, 10 * now)
    assert 993 <= peer.level_at_ns <= 996
    peer.match_index = 10_000
    peer.note_level(1001, 10_000)
    assert peer.level_at_ns == 1001


def test_members_that_have_confirmed_nothing_to_this_master_are_unknown() -> None:
    cluster, master, (dead, other) = filled()
    dead.crash()
    master.crash()
    master.start(cluster.now)
    successor = cluster.elect()
    assert {successor.name, dead.name} < {"a", "b", "c"}
    found = row(successor, dead.name)
    assert found == MemberStatus(dead.name, is_voter=True)
    assert other.is_up


def test_slave_reports_itself_and_the_age_of_its_masters_latest_frame() -> None:
    cluster, master, (slave, other) = filled()
    cluster.run_for(TIMEOUT_NS)
    own, of_master, of_other = (row(slave, each.name) for each in (slave, master, other))
    assert (own.role, own.durable_index, own.disk) == ("slave", slave.replica.log.last_index, "ok")
    assert own.lag_count is None
    assert (of_master.role, of_master.durable_index, of_master.lag_count) == ("master", None, None)
    assert of_master.silent_ns is not None
    assert of_master.silent_ns <= TIMEOUT_NS // 4
    assert structs.replace(of_other, version=None) == MemberStatus(other.name, is_voter=True)


def test_master_learns_that_the_disk_of_a_slave_hangs_and_that_it_answers_again() -> None:
    cluster, master, (slave, _) = filled()
    slave.syncs = False
    cluster.send_all(write(9))
    cluster.run_until(lambda: row(master, slave.name).disk == "hangs")
    assert row(slave, slave.name).disk == "hangs"
    assert row(master, slave.name).lag_count == 1
    slave.syncs = True
    cluster.run_until(lambda: row(master, slave.name).disk == "ok" and row(master, slave.name).lag_count == 0)


def test_volatile_queue_has_no_disk() -> None:
    cluster = Changed(3, queue(volatile=True))
    master = cluster.elect()
    assert {each.disk for each in status(master).members} == {"none"}


def test_what_letters_of_an_earlier_member_do_not_contain_is_unknown() -> None:
    cluster = MixedCluster(3, {"c"})
    master = cluster.elect()
    assert master.name != "c"
    cluster.run_for(2 * TIMEOUT_NS)
    old, new = row(master, "c"), row(master, "b" if master.name == "a" else "a")
    assert (old.durable_index, old.lag_count) == (new.durable_index, 0)
    assert (old.applied_index, old.disk, old.version) == (None, "", 3)
    assert (new.applied_index, new.disk, new.version) == (master.replica.log.commit_index, "ok", VERSION)
    assert cluster.skipped == []
