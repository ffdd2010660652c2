"""Members of different versions in one cluster."""

from __future__ import annotations

import pytest

from qsctl.core.high_availability.versions import EARLIEST, VERSION, Versions
from tests.core.high_availability.cluster import TIMEOUT_NS, acknowledge, held, join, write
from tests.core.high_availability.version_3 import MixedCluster


def test_lowest_version_is_common_and_a_member_never_heard_of_has_the_earliest() -> None:
    versions = Versions()
    assert versions.common([]) == VERSION
    assert versions.hear("b", VERSION + 1)
    assert not versions.hear("b", VERSION + 1)
    assert versions.common(["b"]) == VERSION
    assert versions.common(["b", "c"]) == EARLIEST
    assert not versions.hear("c", EARLIEST)
    versions.hear("c", VERSION)
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
    cluster.run_for(TIMEOUT_NS)
    assert versions.common("bc") == EARLIEST
