"""Members of different versions in one cluster."""

from __future__ import annotations

import pytest

from qsctl.core.admin.command import ChangeMembers, MemberAction
from qsctl.core.high_availability.frames import Entries, Ordered, OrderedRun
from qsctl.core.high_availability.versions import EARLIEST, RUNS, VERSION, Versions
from qsctl.core.records import Assigned, AssignedRun, Enqueued, EnqueuedRun
from tests.core.high_availability.cluster import TIMEOUT_NS, Cluster, acknowledge, held, join, write, write_run
from tests.core.high_availability.member_commands import RESOURCE, command
from tests.core.high_availability.version_3 import MixedCluster


def test_lowest_version_is_common_and_a_silent_member_has_the_earliest() -> None:
    versions = Versions()
    assert versions.common([]) == VERSION
    assert versions.note("b", VERSION + 1)
    assert not versions.note("b", VERSION + 1)
    assert versions.common(["b"]) == VERSION
    assert versions.common(["b", "c"]) == EARLIEST
    assert not versions.note("c", EARLIEST)
    versions.note("c", VERSION)
    assert versions.common(["b", "c"]) == VERSION


@pytest.mark.parametrize("of_version_3", [{"a"}, {"b"}, {"a", "b"}])
def test_members_of_two_versions_elect_a_master_and_replicate(of_version_3: set[str]) -> None:
    cluster = MixedCluster(3, of_version_3)
    master = cluster.elect()
    cluster.send_all(join())
    for number in range(1, 6):
        cluster.send_all(write(number))
    cluster.run_until(lambda: len(master.deliveries()) == 5)
    cluster.send_all(*(acknowledge(number) for number in range(1, 5)))
    cluster.run_until(lambda: all(held(process) == ["5 sent"] for process in cluster))
    master.crash()
    successor = cluster.elect()
    cluster.run_until(lambda: held(successor) == ["5 sent redelivered"] or held(successor) == ["5 sent"])
    cluster.run_for(TIMEOUT_NS)
    assert (cluster.dropped, cluster.skipped) == ([], [])


def test_version_of_a_member_follows_its_upgrade_and_its_downgrade() -> None:
    cluster = MixedCluster(3, {"b", "c"})
    cluster.elect()
    versions = cluster["a"].member.versions
    assert versions.common("bc") == EARLIEST
    cluster.of_version_3 = {"c"}
    cluster.run_for(TIMEOUT_NS)
    assert (versions.of("b"), versions.of("c")) == (VERSION, EARLIEST)
    cluster.of_version_3 = set()
    cluster.run_for(TIMEOUT_NS)
    assert versions.common("bc") == VERSION
    cluster.of_version_3 = {"b"}
    cluster.run_for(2 * TIMEOUT_NS)  # it drops letters with heartbeats, until it sends one itself
    assert versions.common("bc") == EARLIEST


def test_entries_of_a_run_are_single_ones_for_a_member_of_an_earlier_version() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    earlier, other = [each for each in cluster if each is not master]
    earlier.version = RUNS - 1
    cluster.run_for(TIMEOUT_NS)
    cluster.send(master.name, join())
    kinds: dict[str, set[type]] = {earlier.name: set(), other.name: set()}
    cluster.send_all(write_run(1, [b"x" * 100] * 8), write_run(9, [b"x"] * 8))
    for _ in range(5):
        for _, recipient, frame in cluster.frames:
            if isinstance(frame, Entries):
                kinds[recipient] |= {*map(type, frame.records)}
        cluster.tick()
    assert kinds == {earlier.name: {Ordered, Enqueued, Assigned}, other.name: {OrderedRun, EnqueuedRun, AssignedRun}}
    cluster.run_for(TIMEOUT_NS)
    assert held(earlier) == held(other) == held(master) == [f"{number} sent" for number in range(1, 17)]


def test_a_change_of_members_is_refused_while_a_member_cannot_replay_it() -> None:
    cluster = MixedCluster(3, {"c"})
    master = cluster.elect()
    assert master.name != "c"
    cluster.run_for(TIMEOUT_NS)
    removal = ChangeMembers(RESOURCE, MemberAction.REMOVE, "c")
    cluster.send(master.name, command(1, removal))
    cluster.tick()
    code, text = master.replies()[1]
    assert code == "ERROR"
    assert "c cannot replay a change of the members" in text
    cluster.of_version_3 = set()
    cluster.run_for(TIMEOUT_NS)
    cluster.send(master.name, command(2, removal))
    cluster.run_until(lambda: 2 in master.replies())
    assert master.replies()[2][0] == "OK"
