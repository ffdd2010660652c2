"""A member as the engine that a turn steps, and what it refuses to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qsctl.core.admin.command import CreateQueue, DeleteQueue, FlushQueue, UpdateQueue
from qsctl.core.high_availability.roles import Role
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.core.queue.settings import RedeliverySettings, ReplicationSettings
from qsctl.errors import Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import parse_resource
from tests.core.high_availability.cluster import STREAM, TIMEOUT_NS, Cluster, Process, held, join, queue, write
from tests.core.high_availability.member_commands import RESOURCE, SUBSCRIBER, command

PLAIN = replace(queue("plain"), replication=ReplicationSettings())


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
        process.name: [each.reply for each in process.sent if isinstance(each, CommandReply)] for process in cluster
    }
    for name, (reply,) in replies.items():
        assert ("is not the master of the replicated queue" in reply.text) == (name != master.name)
        assert reply.not_master == (name != master.name)


def test_nothing_of_a_deleted_queue_leaves_that_no_quorum_has() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.cut(master.name)
    request = CommandRequest(SampleIdentity(Guid(b"q" * 16), 1), "*", DeleteQueue(RESOURCE))
    cluster.send(master.name, write(1), request)
    assert [each.reply.text for each in master.sent if isinstance(each, CommandReply)] == [
        "queue P/S/orders is deleted"
    ]
    assert (master.answers(), master.deliveries()) == ([], [])


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
    with pytest.raises(Refused, match="queue 'orders' has queue_instances 5, and the cluster has 3 members"):
        Cluster(3, queue(instances=5))


def test_time_does_not_advance_while_the_clock_runs_backwards() -> None:
    cluster = Cluster(3)
    cluster.elect()
    for process in cluster:
        process.run(cluster.now - 10**9)
        assert process.replica.next_deadline() > cluster.now - 10**9


NEW = "P/S/new"


def texts(process: Process) -> list[str]:
    return [each.reply.text for each in process.sent if isinstance(each, CommandReply)]


def test_a_queue_that_is_created_at_all_members_is_replicated_and_goes_again() -> None:
    cluster = Cluster(3)
    cluster.elect()
    cluster.send_all(command(1, CreateQueue(SUBSCRIBER, queue("new"))))
    assert {process.member.streams for process in cluster} == {(STREAM, NEW)}
    replicas = [process.member.replicas[NEW] for process in cluster]
    assert {replica.role for replica in replicas} == {Role.SLAVE}, "nobody can have confirmed anything of it before"
    assert len({replica.incarnation for replica in replicas}) == 1
    assert replicas[0].incarnation > 0
    cluster.run_until(lambda: any(replica.is_master for replica in replicas))
    cluster.send_all(join(name=NEW), write(1, topic="New"))
    cluster.run_until(lambda: any((1, 1) in process.answers() for process in cluster))
    cluster.run_until(lambda: all(held(process, NEW) == ["1 sent"] for process in cluster))
    resource = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/new")
    cluster.send_all(command(2, DeleteQueue(resource)))
    for process in cluster:
        assert "new is deleted" in texts(process)[-1]
        assert process.member.streams == (STREAM,)
    cluster.run_for(TIMEOUT_NS)
    assert len(cluster.masters()) == 1


def test_a_queue_that_one_member_creates_anew_learns_what_the_others_have() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(held(process) for process in cluster))
    slave = next(process for process in cluster if process is not master)
    cluster.send(slave.name, command(1, DeleteQueue(RESOURCE)))
    assert slave.member.streams == ()
    cluster.run_for(TIMEOUT_NS)
    cluster.send(slave.name, command(2, CreateQueue(SUBSCRIBER, queue())))
    assert slave.replica.incarnation != master.replica.incarnation
    cluster.run_until(lambda: slave.replica.role is Role.LEARNER)
    cluster.run_until(lambda: held(slave) == ["1 enqueued"] and slave.replica.role is Role.SLAVE)


def test_a_replicated_queue_is_not_changed_in_place() -> None:
    cluster = Cluster(3)
    cluster.elect()
    changed = replace(queue(), redelivery=RedeliverySettings(7))
    cluster.send_all(command(1, UpdateQueue(RESOURCE, changed)))
    for process in cluster:
        assert "is replicated, and its replicas would not change together" in texts(process)[-1]
        assert process.member.engine.hosted.queue(RESOURCE).settings == queue()


def test_a_part_of_a_group_neither_comes_nor_goes_alone() -> None:
    letters = queue("dead", is_dead_letter=True)
    cluster = Cluster(3, letters, queue(dead_letter_queue="dead"))
    cluster.elect()
    cluster.send_all(command(1, DeleteQueue(RESOURCE)), command(2, CreateQueue(SUBSCRIBER, queue("new", instances=5))))
    cluster.send_all(command(3, CreateQueue(SUBSCRIBER, queue("new", dead_letter_queue="dead"))))
    for process in cluster:
        gone, small, joins = texts(process)
        assert "is in a replication group with its dead-letter queue" in gone
        assert "queue 'new' has queue_instances 5, and the cluster has 3 members" in small
        assert "'new' would join the replication group of 'dead'" in joins
        assert len(process.member.replicas) == 1


def test_a_group_forms_once_its_members_are_named() -> None:
    """Stand-ins of names neither vote nor send: the others are asked by the names that are learned."""
    cluster = Cluster(3)
    for name, process in cluster.processes.items():
        process.names = [name, "?2", "?3"]
        process.start(cluster.now, is_new=True)
    cluster.run_for(2 * TIMEOUT_NS)
    assert cluster.masters() == []
    for process in cluster:
        process.member.know_members(tuple(cluster.processes))
    assert cluster.elect().replica.is_master


def test_a_process_that_joins_has_a_vote_if_it_turns_out_to_have_formed_the_cluster() -> None:
    cluster = Cluster(3)
    joining = cluster["c"]
    joining.names, joining.is_joining = ["?1", "?2", "?3"], True
    joining.start(cluster.now, is_new=True)
    cluster.run_for(2 * TIMEOUT_NS)
    assert joining.replica.role is Role.LEARNER
    joining.member.know_members(tuple("abc"))
    cluster.run_until(lambda: joining.replica.role is Role.SLAVE)


def test_a_process_that_joins_adopts_the_names_of_the_members() -> None:
    cluster = Cluster(3)
    joined = cluster.join("d", ("?1", "?2", "?3"))
    joined.member.know_members(tuple("abc"))
    assert sorted(joined.replica.members.others) == ["a", "b", "c"]
    with pytest.raises(Refused, match="4 members are named, and the queues expect 3"):
        joined.member.know_members(tuple("abce"))
