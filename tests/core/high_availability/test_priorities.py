"""Priorities of masters: a preferred member becomes the master once it has been level for long, and excludes none."""

from __future__ import annotations

import pytest

from qsctl.core.admin.command import Drain, StepDown
from qsctl.core.high_availability._hand_over import LEVEL_TIMEOUTS
from qsctl.core.high_availability._preferences import ANNOUNCED_TIMEOUTS
from qsctl.core.high_availability.frames import Frame, Preference, has_samples
from qsctl.core.high_availability.versions import PREFERENCES, VERSION, Versions
from qsctl.core.statistics.status import ReplicationStatus
from tests.core.high_availability.cluster import STREAM, TIMEOUT_NS, Cluster, Process, held, write
from tests.core.high_availability.member_commands import RESOURCE, command

LONG_NS = (LEVEL_TIMEOUTS + 2) * TIMEOUT_NS
FIRST_IS_A = (0.0, 0.5, 0.9)
"""Jitter by which `a` is elected first, and then `b`."""


class Introduced(Cluster):
    """A cluster whose members have each other's letters from the beginning, as those that discovered each other."""

    withheld: frozenset[str] = frozenset()
    """Members to which no entries are sent."""

    def gather(self, process: Process) -> None:
        for other in self.processes.values():
            process.member.versions.note(other.name, VERSION)
        super().gather(process)
        self.frames = [
            (sender, recipient, frame)
            for sender, recipient, frame in self.frames
            if recipient not in self.withheld or not has_samples(frame)
        ]


def preferring(**priorities: int) -> tuple[Introduced, Process, Process, Process]:
    """A cluster of which `a`, without a priority, is the first master."""
    cluster = Introduced(3, jitter=FIRST_IS_A, priorities=priorities)
    assert cluster.elect() is cluster["a"]
    return cluster, cluster["a"], cluster["b"], cluster["c"]


def priorities(process: Process) -> dict[str, int | None]:
    found = process.member.status(STREAM)
    assert isinstance(found, ReplicationStatus)
    return {each.name: each.master_priority for each in found.members}


def test_preferred_member_becomes_the_master_once_it_has_been_level_for_long() -> None:
    cluster, first, _, preferred = preferring(b=1, c=2)
    cluster.run_for((LEVEL_TIMEOUTS - 1) * TIMEOUT_NS)
    assert first.replica.is_master, "not at once"
    cluster.run_until(lambda: preferred.replica.is_master, within_ns=3 * TIMEOUT_NS)
    assert preferred.replica.epoch == 2, "by a hand-over: one election sufficed"
    changes = [each.reason for each in first.member.pop_changes()]
    assert "c has a higher priority, and hands over to c" in changes
    cluster.run_for(2 * LONG_NS)
    assert cluster.masters() == ["c"], "and it stays"


def test_samples_are_accepted_or_rejected_while_the_master_moves_by_itself() -> None:
    cluster, _, _, preferred = preferring(c=1)
    for number in range(1, 501):
        cluster.send_all(write(number))
        cluster.tick()
    cluster.run_for(2 * TIMEOUT_NS)
    assert cluster.masters() == [preferred.name]
    accepted = {each for process in cluster for each, response in process.answers() if response == 1}
    rejected = {each for process in cluster for each, response in process.answers() if response == 0}
    assert [int(each.split()[0]) for each in held(preferred)] == sorted(accepted)
    assert accepted | rejected == set(range(1, 501))
    assert len(accepted) > 490


def test_member_that_is_level_for_a_moment_at_a_time_does_not_become_the_master() -> None:
    cluster, first, _, preferred = preferring(c=1)
    for _ in range(3 * LEVEL_TIMEOUTS):
        preferred.start(cluster.now)
        cluster.run_for(2 * TIMEOUT_NS)
        preferred.crash()
        cluster.run_for(2 * TIMEOUT_NS)
    assert first.replica.is_master
    assert first.replica.epoch == 1


def test_member_that_lacks_entries_does_not_become_the_master() -> None:
    cluster, first, _, preferred = preferring(c=1)
    cluster.withheld = frozenset({preferred.name})
    for number in range(1, 4 * LEVEL_TIMEOUTS):
        cluster.send_all(write(number))
        cluster.run_for(TIMEOUT_NS // 2)
    assert (first.replica.is_master, first.replica.epoch) == (True, 1)
    assert len(first.answers()) == 4 * LEVEL_TIMEOUTS - 1, "and samples go on"
    cluster.withheld = frozenset()
    cluster.run_until(lambda: preferred.replica.is_master, within_ns=2 * LONG_NS)


def test_master_that_hands_over_at_once_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.core.high_availability._hand_over.LEVEL_TIMEOUTS", 0)
    with pytest.raises(AssertionError):
        test_member_that_is_level_for_a_moment_at_a_time_does_not_become_the_master()


def test_member_with_a_lower_priority_waits_longer_before_an_election() -> None:
    cluster = Introduced(3, jitter=(0.0, 0.1, 0.9), priorities={"c": 1})
    cluster.elect().crash()
    assert cluster.elect() is cluster["c"], "though its wait was drawn longer"
    assert cluster["c"].replica.epoch == 2


def test_member_with_a_lower_priority_is_elected_where_the_preferred_one_cannot_be() -> None:
    cluster, first, other, preferred = preferring(c=1)
    cluster.run_for(TIMEOUT_NS)
    cluster.withheld = frozenset({preferred.name})
    cluster.send_all(write(1))
    cluster.run_until(lambda: first.answers() == [(1, 1)])
    cluster.run_for(TIMEOUT_NS)
    first.crash()
    cluster.run_until(lambda: other.replica.is_master, within_ns=5 * TIMEOUT_NS)


def test_master_that_was_lost_delays_no_election_though_it_was_preferred() -> None:
    cluster, _, _, preferred = preferring(c=1)
    cluster.run_until(lambda: preferred.replica.is_master, within_ns=2 * LONG_NS)
    cluster.run_for(TIMEOUT_NS)
    at = cluster.now
    preferred.crash()
    cluster.elect()
    assert cluster.now - at <= 2 * TIMEOUT_NS


def test_drained_member_is_no_successor() -> None:
    cluster, first, other, preferred = preferring(c=1)
    cluster.send(preferred.name, command(1, Drain()))
    cluster.run_for(LONG_NS)
    assert first.replica.is_master
    cluster.send(first.name, command(2, StepDown(RESOURCE, preferred.name)))
    cluster.tick()
    assert first.replies()[2][0] == "ERROR"
    assert "c is drained" in first.replies()[2][1]
    cluster.send(first.name, command(3, StepDown(RESOURCE)))
    cluster.run_until(lambda: other.replica.is_master)
    preferred.crash()
    preferred.start(cluster.now)
    cluster.run_until(lambda: preferred.replica.is_master, within_ns=2 * LONG_NS)


def test_operator_moves_the_master_to_a_member_that_was_drained_before_it_restarted() -> None:
    cluster, first, other, _ = preferring()
    cluster.send(other.name, command(1, Drain()))
    cluster.run_for(TIMEOUT_NS)
    other.crash()
    other.start(cluster.now)
    cluster.run_for(TIMEOUT_NS)
    cluster.send(first.name, command(2, StepDown(RESOURCE, other.name)))
    cluster.run_until(lambda: other.replica.is_master)


def test_status_has_the_priority_of_each_member_and_forgets_an_old_one() -> None:
    cluster, first, _, preferred = preferring(b=1, c=2)
    cluster.run_for(2 * TIMEOUT_NS)
    assert priorities(first) == {"a": 0, "b": 1, "c": 2}
    assert priorities(preferred) == {"a": None, "b": 1, "c": 2}
    preferred.crash()
    preferred.master_priority = 0
    preferred.start(cluster.now)
    cluster.run_for((ANNOUNCED_TIMEOUTS + 1) * TIMEOUT_NS)
    assert priorities(cluster.elect())["c"] == 0


def test_member_of_an_earlier_version_is_sent_no_preference() -> None:
    cluster, _, _, preferred = preferring(c=1)
    sent: list[str] = []
    replica = preferred.replica
    send = replica.outgoing.send

    def note(recipient: str, frame: Frame, *, rests_on_writes: bool) -> None:
        if isinstance(frame, Preference):
            sent.append(recipient)
        send(recipient, frame, rests_on_writes=rests_on_writes)

    replica.outgoing.send = note  # type: ignore[method-assign]
    cluster.run_for(TIMEOUT_NS)
    assert set(sent) == {"a", "b"}
    replica.versions = Versions()
    replica.versions.note("a", PREFERENCES - 1)
    replica.versions.note("b", PREFERENCES)
    sent.clear()
    cluster.run_for(2 * TIMEOUT_NS)
    assert set(sent) == {"b"}
