"""A log replays to the state that wrote it, from every prefix and from every snapshot."""

from __future__ import annotations

import dataclasses

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.high_availability._follower import Follower
from qsctl.core.high_availability._log import LogSnapshot, ReplicatedLog
from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerLeft, RunAcknowledgment, RunDelivery
from qsctl.core.queue.settings import DistributionSettings, RedeliverySettings, ResourceLimitSettings
from qsctl.core.records import EpochBegan, QueueRecord, one_by_one
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import SampleIdentity, counted_incarnations
from tests.core.high_availability.cluster import (
    OTHER_READER,
    READER,
    STREAM,
    TIMEOUT_NS,
    Cluster,
    Process,
    join,
    queue,
    write,
    write_run,
)
from tests.example_counts import examples

DEAD = "P/S/dead"
QUEUES = (
    queue("dead", is_dead_letter=True, limits=ResourceLimitSettings(max_count=3)),
    queue(
        dead_letter_queue="dead",
        redelivery=RedeliverySettings(max_delivery_retries=1, response_timeout_ns=TIMEOUT_NS // 4),
        distribution=DistributionSettings(unacked_threshold=1),
    ),
)
STEPS = ["write", "write", "accept", "accept", "reject", "join", "leave", "wait", "depose", "restart", "dead join"]
STEPS_OF_RUNS = [*STEPS, "write run", "write run", "accept run", "accept run"]


def fresh(records: list[QueueRecord]) -> Follower:
    """A follower that has seen nothing."""
    subscriber = SharedSubscriberSettings("S", (), QUEUES)
    configuration = ServiceSettings("fresh", (DomainParticipantSettings("P", 0, (subscriber,)),))
    engine = ServiceEngine(configuration, started_at=0, draw=counted_incarnations(), journal=Journal.REPLICATED)
    follower = Follower(DEAD, [engine.hosted.by_name[DEAD], engine.hosted.by_name[STREAM]])
    began = records[0]
    assert isinstance(began, EpochBegan)
    follower.be(began.incarnation)
    return follower


def replayed(records: list[QueueRecord], upto: int, base: LogSnapshot | None = None) -> tuple[QueueRecord, ...]:
    """The state after so many records, as a snapshot."""
    log = ReplicatedLog() if base is None else ReplicatedLog(base)
    first = 0 if base is None else base.index
    log.append(records[first:upto])
    log.commit(upto)
    follower = fresh(records)
    follower.roll_back(0, log, log.commit_index)
    return follower.snapshot(0, 0)


def last_index(process: Process) -> int:
    return process.replica.log.last_index


def work(cluster: Cluster, steps: list[str]) -> None:
    number = 0
    for step in steps:
        names = cluster.masters()
        master = cluster[names[0]] if names else None
        if step == "write":
            number += 1
            cluster.send_all(write(number))
        elif step == "write run":
            cluster.send_all(write_run(number + 1, [b"x" * (number % 5)] * 9))
            number += 9
        elif step == "accept run" and master is not None:
            for delivery in [each for each in master.sent if isinstance(each, RunDelivery)][-1:]:
                count, guid = len(delivery.payloads), delivery.consumer_guid
                cluster.send(master.name, RunAcknowledgment(STREAM, guid, delivery.identity, count, delivery.step))
        elif step == "join":
            cluster.send_all(join(), join(OTHER_READER))
        elif step == "leave":
            cluster.send_all(ConsumerLeft(STREAM, READER))
        elif step == "dead join":
            cluster.send_all(join(READER, DEAD))
        elif step == "wait":
            cluster.run_for(TIMEOUT_NS // 2)
        elif step == "depose" and master is not None:
            cluster.cut(master.name)
            cluster.run_for(4 * TIMEOUT_NS)
            cluster.heal()
        elif step == "restart" and master is not None:
            master.crash()
            master.start(cluster.now)
        elif step in {"accept", "reject"} and master is not None:
            answer(master, cluster, AckResponse.ACCEPTED if step == "accept" else AckResponse.REJECTED)
        cluster.tick()


def answer(master: Process, cluster: Cluster, response: AckResponse) -> None:
    """Answer the latest delivery."""
    for delivery in master.deliveries()[-1:]:
        identity = SampleIdentity(delivery.identity.writer_guid, delivery.identity.sequence_number)
        cluster.send(master.name, Acknowledgment(delivery.queue, delivery.consumer_guid, identity, response))


@settings(max_examples=examples(10, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(st.sampled_from(STEPS), min_size=5, max_size=40))
def test_every_prefix_of_a_log_replays_to_the_state_that_wrote_it(steps: list[str]) -> None:
    """A slave's state after each entry is what a start makes of the log up to there, and of any snapshot before."""
    replay_every_prefix(Cluster(3, *QUEUES), steps)


@settings(max_examples=examples(10, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(st.sampled_from(STEPS_OF_RUNS), min_size=5, max_size=40), st.sampled_from([1, 6, -1]))
def test_every_prefix_of_a_log_of_runs_replays_to_the_state_that_wrote_it(steps: list[str], threshold: int) -> None:
    """The same, and records of runs lead to the states that single ones lead to, wherever they are divided."""
    distribution = DistributionSettings(unacked_threshold=threshold)
    queues = (QUEUES[0], dataclasses.replace(QUEUES[1], distribution=distribution))
    replay_every_prefix(Cluster(3, *queues), ["write run", *steps])


def replay_every_prefix(cluster: Cluster, steps: list[str]) -> None:
    states: dict[int, tuple[QueueRecord, ...]] = {}
    cluster.elect()
    cluster.send_all(join(), join(OTHER_READER))
    work(cluster, ["write", "write", *steps])
    cluster.elect()
    cluster.run_until(
        lambda: (
            len({index for process in cluster for index in (process.replica.log.commit_index, last_index(process))})
            == 1
        )
    )
    logs = [process.replica.log for process in cluster]
    (records,) = {tuple(one_by_one(each.records_from(1, each.commit_index))) for each in logs}
    log = list(records)
    follower, replicated = fresh(log), ReplicatedLog()
    replicated.append(log)
    replicated.commit(len(log))
    by_runs = [fresh(log) for _ in logs]
    for index in range(len(log) + 1):
        follower.follow(replicated, index)
        states[index] = follower.snapshot(0, 0)
        assert replayed(log, index) == states[index]
        for each, of_runs in zip(by_runs, logs, strict=True):
            if index % 7 in (0, 3) or index == len(log):
                each.follow(of_runs, index)
                assert each.snapshot(0, 0) == states[index]
    for base in range(0, len(log) + 1, 5):
        snapshot = LogSnapshot(base, 0, states[base])
        assert replayed(log, len(log), snapshot) == states[len(log)]
    for process in cluster:
        assert process.replica.log.last_index == len(log)
        assert process.replica.follower.snapshot(0, 0) == states[len(log)], "the master's too, which wrote it"
