"""Elections and commits of a cluster of three [QS 7.1.1 and 7.1.2]."""

from __future__ import annotations

from tests.core.high_availability.cluster import Cluster, acknowledge, held, join, write


def test_one_of_three_becomes_master_and_commits_a_sample_at_a_quorum() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    assert master.answers() == []
    cluster.run_until(lambda: master.answers() == [(1, 1)])
    cluster.run_until(lambda: [each.identity.sequence_number for each in master.deliveries()] == [1])
    assert not master.deliveries()[0].flags
    cluster.send_all(acknowledge(1))
    cluster.run_until(lambda: all(held(process) == [] for process in cluster))


def test_a_slave_takes_over_and_redelivers_what_was_assigned_to_the_same_consumer() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    master.crash()
    successor = cluster.elect()
    assert successor is not master
    cluster.run_until(successor.deliveries)
    assert [(each.consumer_guid, each.flags) for each in successor.deliveries()] == [(b"r" * 16, 1)]
    master.start(cluster.now)
    cluster.send_all(join())
    cluster.run_until(lambda: held(master) == ["1 sent redelivered"])
