"""A member as the engine that a turn steps, and what it refuses to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qsctl.core.admin.command import FlushQueue
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.errors import Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import parse_resource
from tests.core.high_availability.cluster import STREAM, Cluster, held, join, queue, write

PLAIN = replace(queue("plain"), replication=ReplicationSettings())
RESOURCE = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")


def flush(number: int) -> CommandRequest:
    return CommandRequest(SampleIdentity(Guid(b"q" * 16), number), "*", FlushQueue(RESOURCE))


def test_a_queue_that_is_not_replicated_waits_for_no_quorum() -> None:
    cluster = Cluster(3, queue(), PLAIN)
    lonely = cluster["a"]
    cluster.cut("a")
    cluster.send("a", join(name="P/S/plain"))
    cluster.send("a", write(1, topic="Plain"))
    assert lonely.answers() == [(1, 1)]
    assert [each.queue for each in lonely.deliveries()] == ["P/S/plain"]


def test_each_queue_of_a_topic_answers_for_itself_replicated_or_not() -> None:
    cluster = Cluster(3, queue(), replace(PLAIN, topic_name="Other"))
    master = cluster.elect()
    cluster.send_all(write(1), write(2, topic="Other"))
    assert master.answers() == [(2, 1)]
    cluster.run_until(lambda: master.answers() == [(2, 1), (1, 1)])


def test_a_command_that_removes_samples_is_the_masters() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(held(process) for process in cluster))
    cluster.send_all(flush(1))
    cluster.run_until(lambda: all(held(process) == [] for process in cluster))
    replies = {
        process.name: [each.reply.text for each in process.sent if isinstance(each, CommandReply)]
        for process in cluster
    }
    for name, (text,) in replies.items():
        assert ("is not the master of the replicated queue" in text) == (name != master.name)


def test_the_reply_of_a_command_waits_until_what_it_did_is_committed() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(held(process) for process in cluster))
    cluster.cut(master.name)
    cluster.send(master.name, flush(1))
    assert held(master) == []
    assert not [each for each in master.sent if isinstance(each, CommandReply)]


def test_a_cluster_has_as_many_members_as_a_queue_has_instances() -> None:
    with pytest.raises(Refused, match=f"{STREAM} has queue_instances 5, and the cluster has 3 members"):
        Cluster(3, queue(instances=5))


def test_a_clock_that_runs_backwards_stands_still() -> None:
    cluster = Cluster(3)
    cluster.elect()
    for process in cluster:
        process.run(cluster.now - 10**9)
        assert process.replica.next_deadline() > cluster.now - 10**9
