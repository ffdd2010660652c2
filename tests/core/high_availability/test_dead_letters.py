"""Replicated queues with dead letters: one group, one log, and a move in one record [QS 2.12]."""

from __future__ import annotations

import pytest

from qsctl.core.admin.command import HeldSample, MoveSamples
from qsctl.core.high_availability._follower import Follower
from qsctl.core.messages import Acknowledgment, AckResponse, CommandRequest
from qsctl.core.queue.settings import RedeliverySettings
from qsctl.core.records import Enqueued
from qsctl.errors import Refused
from qsctl.identity import SampleIdentity
from qsctl.resource import parse_resource
from tests.core.high_availability.cluster import (
    OTHER_READER,
    READER,
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

DEAD = "P/S/dead"
ORDERS = queue("orders", dead_letter_queue="dead", redelivery=RedeliverySettings(max_delivery_retries=0))
INVOICES = queue("invoices", dead_letter_queue="dead")
LETTERS = queue("dead", is_dead_letter=True)


def reject(number: int) -> Acknowledgment:
    return Acknowledgment(STREAM, READER, SampleIdentity(WRITER, number), AckResponse.REJECTED)


def test_a_queue_and_its_dead_letters_are_one_group() -> None:
    cluster = Cluster(3, LETTERS, ORDERS, INVOICES, queue("others"))
    assert cluster["a"].member.streams == (DEAD, "P/S/others")
    assert [each.name for each in cluster["a"].replica.follower.queues] == [DEAD, STREAM, "P/S/invoices"]


def test_a_move_to_the_dead_letters_is_one_record() -> None:
    cluster = Cluster(3, LETTERS, ORDERS)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    log = master.replica.log
    before = log.last_index
    cluster.send(master.name, reject(1))
    ((_, record),) = [log.entry(index) for index in range(before + 1, log.last_index + 1)]
    assert isinstance(record, Enqueued)
    assert (record.queue, record.dead_letter_from, record.dead_letter_position) == (DEAD, "Orders@S", 1)
    cluster.run_until(lambda: all(held(process) == [] and held(process, DEAD) == ["1 enqueued"] for process in cluster))


def requeue(master: Process) -> CommandRequest:
    """The command that moves the only dead letter back."""
    queues = master.member.engine.hosted.by_name
    (letter,) = queues[DEAD].held
    assert letter.dead_letter is not None
    origin = letter.dead_letter
    sample = HeldSample(letter.position, origin.identity, origin.queue, origin.position, origin.incarnation)
    s = "/domain_participant/P/shared_subscriber/S"
    dead, orders = f"{s}/dead_letter_shared_reader_queue/dead", f"{s}/shared_reader_queue/orders"
    command = MoveSamples(parse_resource(dead), parse_resource(orders), (sample,))
    return CommandRequest(SampleIdentity(READER, 1), "*", command)


def with_a_dead_letter() -> tuple[Cluster, Process]:
    cluster = Cluster(3, LETTERS, ORDERS)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    cluster.send(master.name, reject(1))
    cluster.run_until(lambda: all(held(process, DEAD) == ["1 enqueued"] for process in cluster))
    return cluster, master


def test_a_dead_letter_goes_back_in_one_record_at_every_replica() -> None:
    cluster, master = with_a_dead_letter()
    before = master.replica.log.last_index
    cluster.send(master.name, requeue(master))
    cluster.run_until(lambda: all(held(process, DEAD) == [] for process in cluster))
    cluster.run_until(lambda: all(held(process) == ["1 sent"] for process in cluster))
    log = master.replica.log
    _, record = log.entry(before + 1)
    assert isinstance(record, Enqueued)
    assert record.moved_from is not None
    for end in range(before, log.last_index + 1):
        fresh = Process("d", ("d", "e", "f"), (LETTERS, ORDERS), lambda: 0.5)
        fresh.start(0)
        queues = fresh.member.engine.hosted.by_name.values()
        follower = Follower(DEAD, sorted(queues, key=lambda each: each.name != DEAD))
        follower.begin(0, log.base)
        follower.follow(log, end)
        assert sum(len(each.held) for each in follower.queues) == 1, f"entry {end}: in neither queue, or in both"


def test_a_returned_dead_letter_is_in_one_queue_under_any_master() -> None:
    cluster, master = with_a_dead_letter()
    cluster.cut(master.name)
    cluster.send(master.name, requeue(master))
    assert held(master, DEAD) == []
    cluster.run_until(lambda: len(cluster.masters()) == 1 and cluster.masters() != [master.name])
    cluster.heal()
    cluster.run_until(lambda: all(held(process, DEAD) == ["1 enqueued"] for process in cluster))
    assert all(held(process) == [] for process in cluster)


def test_a_dead_letter_exists_once_under_any_master() -> None:
    cluster = Cluster(3, LETTERS, ORDERS)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    cluster.cut(master.name)
    cluster.send(master.name, reject(1))
    assert held(master, DEAD) == ["1 enqueued"]
    cluster.run_until(lambda: len(cluster.masters()) == 1 and cluster.masters() != [master.name])
    successor = cluster[cluster.masters()[0]]
    assert held(successor, DEAD) == []
    cluster.run_until(lambda: [each.identity.sequence_number for each in successor.deliveries()] == [1])
    cluster.heal()
    cluster.run_until(lambda: held(master, DEAD) == [] and held(master) == ["1 sent redelivered"])
    cluster.send(successor.name, reject(1))
    cluster.run_until(
        lambda: all(held(process) == [] and held(process, DEAD) == ["1 enqueued redelivered"] for process in cluster)
    )


def test_dead_letters_survive_a_take_over_and_are_delivered() -> None:
    cluster = Cluster(3, LETTERS, ORDERS)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    cluster.send(master.name, reject(1))
    cluster.run_until(lambda: all(held(process, DEAD) == ["1 enqueued"] for process in cluster))
    master.crash()
    successor = cluster.elect()
    cluster.send_all(join(OTHER_READER, DEAD))
    cluster.run_until(lambda: successor.deliveries()[-1:])
    letter = successor.deliveries()[-1]
    assert (letter.queue, letter.original_identity.sequence_number) == (DEAD, 1)
    cluster.send(successor.name, Acknowledgment(DEAD, OTHER_READER, letter.identity))
    cluster.run_until(lambda: all(held(process, DEAD) == [] for process in cluster))


def test_an_identity_that_comes_again_has_a_dead_letter_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It left the window of the queue's own memory, and was written again."""
    monkeypatch.setattr("qsctl.core.queue._held.RETIRED_IDENTITIES_MAX", 0)
    cluster = Cluster(3, LETTERS, ORDERS)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    cluster.send(master.name, reject(1))
    cluster.run_for(TIMEOUT_NS)
    cluster.send_all(write(1, attempt=2))
    cluster.run_until(lambda: len(master.deliveries()) == 2)
    cluster.send(master.name, reject(1))
    _, record = master.replica.log.entry(master.replica.log.last_index)
    assert isinstance(record, Enqueued)
    assert (record.queue, record.dead_letter_position) == (DEAD, 2)
    assert held(master) == []
    cluster.run_until(lambda: all(len(held(process, DEAD)) == 2 and not held(process) for process in cluster))


def test_a_snapshot_holds_all_queues_of_the_group() -> None:
    cluster = Cluster(3, LETTERS, ORDERS)
    for process in cluster:
        process.compacted_over_count = 6
        process.start(0)
    master = cluster.elect()
    cluster.send_all(join())
    for number in range(1, 9):
        cluster.send_all(write(number))
        cluster.run_until(lambda number=number: len(master.deliveries()) == number)  # type: ignore[misc]
        cluster.send(master.name, reject(number) if number < 3 else acknowledge(number))
    cluster.run_until(lambda: all(process.replica.log.base.index > 10 for process in cluster))
    slave = next(process for process in cluster if process is not master)
    slave.crash()
    slave.start(cluster.now)
    cluster.run_until(lambda: held(slave, DEAD) == ["1 enqueued", "2 enqueued"] and held(slave) == held(master))


@pytest.mark.parametrize(
    "letters",
    [queue("dead", is_dead_letter=True, volatile=True), queue("dead", is_dead_letter=True, instances=5)],
    ids=["persistence", "replication"],
)
def test_a_queue_and_its_dead_letters_must_be_replicated_alike(letters: object) -> None:
    with pytest.raises(Refused, match="'orders' and its dead-letter queue 'dead' are not replicated alike"):
        Cluster(3, letters, ORDERS)  # type: ignore[arg-type]
