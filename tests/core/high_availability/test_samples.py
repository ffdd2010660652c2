"""What producers are answered, and how samples get to all replicas [QS 7.1.1.1 and 7.1.1.2]."""

from __future__ import annotations

import msgspec
import pytest

from qsctl.core.high_availability.frames import Entries, Ordered, Relayed
from qsctl.core.messages import ConsumerLeft, RunAccepted, RunAcknowledgment, SampleFlag, WriteAcknowledgment, WriteRun
from qsctl.core.records import Enqueued
from qsctl.identity import Guid, SampleIdentity
from tests.core.high_availability.cluster import (
    STREAM,
    TIMEOUT_NS,
    WRITER,
    Cluster,
    Process,
    held,
    join,
    queue,
    write,
    write_run,
)

LARGE = b"x" * 1_000
OTHER = Guid(b"o" * 16)


def slave_of(cluster: Cluster, master: Process) -> Process:
    return next(process for process in cluster if process is not master)


def test_the_master_accepts_and_a_slave_does_once_it_is_asked_again() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(held(process) == ["1 enqueued"] for process in cluster))
    slave = slave_of(cluster, master)
    assert (master.answers(), slave.answers()) == ([(1, 1)], [])
    cluster.send(slave.name, write(1, attempt=2))
    assert slave.answers() == [(1, 1)]


def test_a_delivery_that_waits_for_a_quorum_when_its_consumer_vanishes_was_no_attempt() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send(master.name, join(), write(1))
    assert master.deliveries() == [], "its assignment is not committed"
    cluster.send(master.name, ConsumerLeft(STREAM, join().consumer_guid))
    cluster.send(master.name, join(OTHER))
    cluster.run_until(master.deliveries)
    assert [(each.consumer_guid, each.attempt) for each in master.deliveries()] == [(OTHER, 1)]
    assert held(master) == ["1 sent"], "with no retries a failed attempt would have been its end"


def test_a_new_master_accepts_what_its_predecessor_may_not_have_answered() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(write(1))
    others = [process for process in cluster if process is not master]
    cluster.run_until(lambda: all(process.replica.log.uncommitted() for process in others))
    master.crash()
    successor = cluster.elect()
    cluster.run_until(successor.answers)
    assert successor.answers() == [(1, 1)]


def test_a_payload_that_replicas_have_from_the_producer_is_not_sent_again() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(write(1, LARGE))
    entries = []
    for _ in range(20):
        entries += [
            entry
            for _, _, frame in cluster.frames
            if isinstance(frame, Entries)
            for entry in frame.records
            if isinstance(entry, Enqueued | Ordered)
        ]
        cluster.tick()
    assert {type(entry) for entry in entries} == {Ordered}
    for process in cluster:
        assert [sample.payload for sample in process.member.engine.hosted.by_name[STREAM].held] == [LARGE]
    assert master.answers() == [(1, 1)]


def test_a_slave_holds_all_of_a_sample_that_the_master_only_ordered() -> None:
    cluster = Cluster()
    cluster.elect()
    related = SampleIdentity(Guid(b"q" * 16), 7)
    sent = msgspec.structs.replace(
        write(1, LARGE), source_guid=Guid(b"s" * 16), related_source_guid=Guid(b"t" * 16), related_identity=related,
        related_reader_guid=Guid(b"u" * 16), flags=SampleFlag.INTERMEDIATE_REPLY_SEQUENCE, lifespan_ns=TIMEOUT_NS,
    )  # fmt: skip
    cluster.send_all(sent)
    cluster.run_until(lambda: all(held(process) for process in cluster))
    logs = [
        [record for record in process.replica.log.records_from(1, 9) if isinstance(record, Enqueued)]
        for process in cluster
    ]
    assert len(logs[0]) == 1
    assert logs[0][0].related_identity == related
    assert logs == [logs[0]] * 3


def test_a_replica_that_lacks_a_payload_gets_it_and_confirms_only_then() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send(master.name, write(1, LARGE))
    cluster.tick()
    cluster.tick()
    assert all(process.replica.log.last_index == 1 for process in cluster if process is not master)
    cluster.run_until(lambda: master.answers() == [(1, 1)])
    cluster.run_until(lambda: all(held(process) == ["1 enqueued"] for process in cluster))
    slave = slave_of(cluster, master)
    assert [sample.payload for sample in slave.member.engine.hosted.by_name[STREAM].held] == [LARGE]


def test_the_refusal_of_a_write_without_a_number_does_not_affect_numbered_ones() -> None:
    cluster = Cluster()
    slave = slave_of(cluster, cluster.elect())
    cluster.send(slave.name, write(1, attempt=0))
    cluster.run_until(slave.answers, 3 * TIMEOUT_NS)
    (refusal,) = [each for each in slave.sent if isinstance(each, WriteAcknowledgment)]
    assert (refusal.response, refusal.attempt) == (0, 0)
    cluster.send(slave.name, write(1, attempt=1))
    assert len(slave.replica.producers.staging) == 1


def test_a_sample_with_the_flag_replicate_is_passed_on_by_any_receiver() -> None:
    cluster = Cluster()
    master = cluster.elect()
    slave = slave_of(cluster, master)
    cluster.send(slave.name, write(1, flags=SampleFlag.REPLICATE))
    assert [recipient for _, recipient, frame in cluster.frames if isinstance(frame, Relayed)] == [
        name for name in "abc" if name != slave.name
    ]
    cluster.run_until(lambda: (1, 1) in master.answers())
    cluster.run_until(lambda: (1, 1) in slave.answers())


def test_a_sample_that_reached_a_slave_only_is_rejected_after_sample_timeout() -> None:
    cluster = Cluster()
    slave = slave_of(cluster, cluster.elect())
    cluster.send(slave.name, write(1))
    cluster.run_for(2 * TIMEOUT_NS - TIMEOUT_NS // 10)
    assert slave.answers() == []
    cluster.run_until(slave.answers, TIMEOUT_NS)
    assert slave.answers() == [(1, 0)]


def test_a_refused_attempt_is_refused_again_and_the_next_is_not() -> None:
    cluster = Cluster()
    slave = slave_of(cluster, cluster.elect())
    cluster.send(slave.name, write(1))
    cluster.run_until(slave.answers, 3 * TIMEOUT_NS)
    cluster.send(slave.name, write(1))
    assert slave.answers() == [(1, 0), (1, 0)]
    assert len(slave.replica.producers.staging) == 0
    cluster.send(slave.name, write(1, attempt=2))
    assert len(slave.replica.producers.staging) == 1


def test_without_a_master_every_replica_rejects_what_it_never_had() -> None:
    cluster = Cluster()
    cluster.send_all(write(1))
    assert [process.answers() for process in cluster] == [[(1, 0)]] * 3
    assert [message.attempt for message in cluster["a"].sent] == [1]  # type: ignore[union-attr]


def test_two_instances_with_one_dead_reject_and_accept_again_when_it_is_back() -> None:
    cluster = Cluster(2)
    master = cluster.elect()
    other = slave_of(cluster, master)
    other.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.send(master.name, write(1))
    assert master.answers() == [(1, 0)]
    other.start(cluster.now)
    master = cluster.elect()
    cluster.send_all(write(1, attempt=2))
    cluster.run_until(lambda: (1, 1) in master.answers())


def test_a_replica_is_silent_on_what_is_in_its_log_and_not_committed() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.cut(master.name)
    cluster.send(master.name, write(1))
    cluster.run_for(5 * TIMEOUT_NS)
    cluster.send(master.name, write(1, attempt=2), write(2))
    assert not master.replica.is_master
    assert master.answers() == [(2, 0)]


def test_a_replica_is_silent_on_what_was_taken_back_until_that_entry_is_dead() -> None:
    cluster = Cluster(5)
    master = cluster.elect()
    friend = slave_of(cluster, master)
    cluster.cut(master.name, friend.name)
    cluster.send(master.name, write(1))
    cluster.run_for(TIMEOUT_NS // 5)
    assert friend.replica.log.last_index == 2
    cluster.run_until(lambda: len(cluster.masters()) == 1 and cluster.masters() != [master.name])
    cluster.heal()
    taken_back = (STREAM, write(1).identity)
    cluster.run_until(lambda: friend.replica.log.last_index == 2 and friend.replica.log.last.epoch == 2)
    cluster.run_until(lambda: not friend.replica.log.was_taken_back(*taken_back))
    assert friend.replica.log.epoch_at(friend.replica.log.commit_index) == 2
    assert friend.answers() == []


def test_a_restarted_replica_rejects_nothing_before_it_knows_what_is_committed() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: master.answers() == [(1, 1)])
    master.crash()
    cluster.cut(master.name)
    master.start(cluster.now)
    cluster.send(master.name, write(2), write(1, attempt=2))
    cluster.run_for(4 * TIMEOUT_NS)
    assert master.answers() == [(1, 1)]
    cluster.heal()
    cluster.run_until(lambda: (1, 1) in master.answers()[1:] or held(master) == ["1 enqueued"])
    assert master.replica.producers.remembers


def test_samples_that_waited_for_a_master_are_enqueued_by_the_next_one() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(join())
    master.crash()
    cluster.send_all(write(1))
    successor = cluster.elect()
    cluster.run_until(lambda: (1, 1) in successor.answers())
    cluster.run_until(successor.deliveries)


@pytest.mark.parametrize("volatile", [False, True])
def test_all_replicas_hold_the_same_after_a_busy_time(volatile: bool) -> None:
    cluster = Cluster(3, queue(volatile=volatile))
    master = cluster.elect()
    for number in range(1, 200):
        cluster.send_all(write(number, LARGE if number % 3 else b""))
        if number % 10 == 0:
            cluster.tick()
    cluster.run_until(lambda: len(master.answers()) == 199)
    cluster.run_until(lambda: len({tuple(held(process)) for process in cluster}) == 1)
    assert len(held(master)) == 199


def test_a_master_gives_away_only_what_is_durable_at_itself() -> None:
    """If it crashes it knows nothing of the rest, and could reject a sample that others deliver."""
    cluster = Cluster()
    master = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    master.syncs = False
    cluster.send_all(write(1))
    cluster.run_for(TIMEOUT_NS // 2)
    assert master.replica.log.last_index == 2
    assert all(process.replica.log.last_index == 1 for process in cluster if process is not master)
    master.syncs = True
    cluster.run_until(lambda: (1, 1) in master.answers())


def test_a_run_of_samples_is_written_to_a_replicated_queue_one_by_one_and_in_order() -> None:
    cluster = Cluster()
    master = cluster.elect()
    run = WriteRun("P", "Orders", write(2).identity, (b"x",) * 9)
    cluster.send_all(write(1), run, write(11))
    cluster.run_until(lambda: all(len(held(process)) == 11 for process in cluster))
    assert [held(process) for process in cluster] == [[f"{number} enqueued" for number in range(1, 12)]] * 3
    assert master.answers() == [(number, 1) for number in range(1, 12)]
    answered = RunAcknowledgment(STREAM, join().consumer_guid, run.identity, 9)
    slave = slave_of(cluster, master)
    cluster.send_all(join())
    cluster.run_until(lambda: len(master.deliveries()) == 11)
    cluster.send(slave.name, answered)
    assert len(held(slave)) == 11, "only the master is answered"
    cluster.send(master.name, answered)
    cluster.run_until(lambda: all(len(held(process)) == 2 for process in cluster))


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_run_that_comes_late_to_a_slave_is_accepted_there_once_it_is_committed(is_committed: bool) -> None:
    cluster = Cluster()
    master = cluster.elect()
    slave = slave_of(cluster, master)
    run = write_run(1, [b"x"] * 9)
    cluster.send(master.name, run)
    cluster.run_until(slave.replica.log.uncommitted)
    if is_committed:
        cluster.run_until(lambda: len(held(slave)) == 9)
    cluster.send(slave.name, run)
    assert bool(slave.sent) == is_committed
    cluster.run_until(lambda: slave.sent)
    assert slave.sent == [RunAccepted(STREAM, SampleIdentity(WRITER, 1), 9)]
