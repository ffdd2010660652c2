"""The configuration of a cluster [QS 7.2]: commands are ordered, every member answers, and all have the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    ForceQuorum,
    GetStatus,
    UpdateQueue,
)
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.high_availability import cluster_configuration
from qsctl.core.high_availability.cluster_configuration import (
    CONFIGURATION_STREAM,
    Change,
    ClusterConfiguration,
    encoded,
    subscribers_of,
)
from qsctl.core.messages import CommandReply, CommandRequest, Write
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    ReplicationSettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import ConfigurationFollowed, ConfigurationKnown, Enqueued, QueueRecord
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import parse_resource
from tests.core.high_availability.cluster import TIMEOUT_NS, WRITER, Cluster, Process, queue

SETTINGS = ReplicationSettings(True, 3, TIMEOUT_NS, False, 2 * TIMEOUT_NS)
PERSISTENT = PersistenceSettings(PersistenceKind.PERSISTENT)
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
ADMINISTRATOR = Guid(b"q" * 16)


def plain(name: str, **given: Any) -> Any:
    return replace(queue(name), replication=ReplicationSettings(), **given)


BASE = plain("base")


def request(number: int, command: Command, target: str = "*") -> CommandRequest:
    return CommandRequest(SampleIdentity(ADMINISTRATOR, number), target, command)


def create(number: int, name: str, **given: Any) -> CommandRequest:
    return request(number, CreateQueue(SUBSCRIBER, plain(name, **given)))


def delete(number: int, name: str) -> CommandRequest:
    return request(number, DeleteQueue(parse_resource(f"{SUBSCRIBER}/shared_reader_queue/{name}")))


def names(process: Process) -> list[str]:
    return sorted(name.rsplit("/", 1)[1] for name in process.member.engine.hosted.by_name)


def cluster_of(size: int = 3, **given: Any) -> Cluster:
    cluster = Cluster(size, BASE, configuration=replace(SETTINGS, queue_instances=size), **given)
    cluster.run_until(lambda: all(followed(process) for process in cluster))
    return cluster


def followed(process: Process) -> ConfigurationFollowed | None:
    return process.member.engine.hosted.followed


def master(cluster: Cluster) -> str:
    (name,) = (each.name for each in cluster if each.member.replicas[CONFIGURATION_STREAM].is_master)
    return name


def slave(cluster: Cluster) -> str:
    return next(name for name in cluster.processes if name != master(cluster))


def all_have(cluster: Cluster, *expected: str) -> bool:
    return all(names(process) == sorted(expected) for process in cluster)


def test_every_member_carries_a_command_out_and_answers() -> None:
    cluster = cluster_of()
    cluster.send_all(create(1, "new"))
    cluster.run_until(lambda: all_have(cluster, "base", "new"))
    cluster.run_for(TIMEOUT_NS)
    assert [process.replies() for process in cluster] == [{1: ("OK", "queue P/S/new is created")}] * 3
    cluster.send_all(delete(2, "new"))
    cluster.run_until(lambda: all(2 in process.replies() for process in cluster))
    assert all_have(cluster, "base")
    assert {process.replies()[2] for process in cluster} == {("OK", "queue P/S/new is deleted")}


def test_every_member_reports_the_members_of_the_configuration() -> None:
    cluster = cluster_of()
    leader = master(cluster)
    cluster.run_for(TIMEOUT_NS)
    for name in "abc":
        cluster.send(name, request(1, GetStatus(None), target=name))
    bodies = {each.name: body_of(each, 1) for each in cluster}
    assert [body.queue_name for body in bodies.values()] == [CONFIGURATION_STREAM] * 3
    found = {name: body.replication for name, body in bodies.items()}
    assert [(name, each.role) for name, each in found.items() if each and each.role == "master"] == [(leader, "master")]
    known = found[leader]
    assert known is not None
    assert [(each.name, each.is_voter, each.lag_count) for each in known.members] == [(name, True, 0) for name in "abc"]


def body_of(process: Process, number: int) -> SharedReaderQueueStatus:
    """Return the status in the reply to a command, which only the member that it was sent to answers."""
    (body,) = (
        message.reply.body
        for message in process.sent
        if isinstance(message, CommandReply) and message.request.sequence_number == number
    )
    assert isinstance(body, SharedReaderQueueStatus)
    return body


def test_queue_is_changed_at_every_member_also_at_one_that_was_away() -> None:
    cluster = cluster_of()
    away = cluster[slave(cluster)]
    away.run(cluster.now, [Write("P", "Base", SampleIdentity(WRITER, 1), b"stays")])
    away.crash()
    changed = replace(BASE, limits=ResourceLimitSettings(max_count=7))
    command = UpdateQueue(parse_resource(f"{SUBSCRIBER}/shared_reader_queue/base"), changed)
    cluster.send_all(request(1, command))
    cluster.run_until(lambda: all(1 in each.replies() for each in cluster))
    assert {each.replies()[1] for each in cluster} == {("OK", "queue P/S/base is changed")}
    before = len(away.service_records)
    away.start(cluster.now)
    everyone = list(cluster.processes.values())
    cluster.run_until(
        lambda: all(each.member.engine.hosted.by_name["P/S/base"].settings == changed for each in everyone)
    )
    cluster.run_for(TIMEOUT_NS)
    made = {type(record).__name__ for record in away.service_records[before:]}
    assert made == {"QueueChanged", "ConfigurationFollowed"}, "and it is not deleted and created again"


def test_whether_queues_are_empty_is_known_to_no_member() -> None:
    cluster = cluster_of()
    queue_, subscriber = parse_resource(f"{SUBSCRIBER}/shared_reader_queue/base"), SUBSCRIBER
    cluster.send_all(request(1, DeleteQueue(queue_, only_if_empty=True)))
    cluster.send_all(request(2, DeleteSubscriber(subscriber, only_if_empty=True)))
    cluster.run_until(lambda: all(2 in process.replies() for process in cluster))
    cluster.run_for(2 * TIMEOUT_NS)
    assert all_have(cluster, "base")
    (code, text), *_ = cluster[slave(cluster)].replies().values()
    assert (code, "is known to none of them; nothing was deleted" in text) == ("ERROR", True)


def test_two_administrators_at_once_leave_the_same_configuration_everywhere() -> None:
    cluster = cluster_of()
    a, b, c = cluster.processes
    first, second = create(1, "new", topic_name="One"), create(2, "new", topic_name="Two")
    cluster.send(a, first), cluster.send(a, second)
    cluster.send(b, second), cluster.send(b, first)
    cluster.send(c, second), cluster.send(c, first)
    cluster.run_until(lambda: all(len(process.replies()) == 2 for process in cluster))
    assert len({str(subscribers_of(process.member.engine.hosted.settings())) for process in cluster}) == 1
    codes = [{number: code for number, (code, _) in process.replies().items()} for process in cluster]
    assert codes[0] == codes[1] == codes[2]
    assert sorted(codes[0].values()) == ["ALREADY_EXISTS", "OK"]


def test_a_command_to_one_member_is_every_members() -> None:
    cluster = cluster_of()
    cluster.send(slave(cluster), create(1, "new"))
    cluster.run_until(lambda: all_have(cluster, "base", "new"))


def test_a_command_for_another_service_is_none_of_the_cluster() -> None:
    cluster = cluster_of()
    cluster.send_all(request(1, create(1, "new").command, "Another*"))
    cluster.run_for(2 * TIMEOUT_NS)
    assert all_have(cluster, "base")
    assert all(not process.replies() for process in cluster)


def test_a_member_that_was_away_catches_up_and_answers_nothing() -> None:
    cluster = cluster_of()
    away = slave(cluster)
    cluster[away].crash()
    cluster.send_all(create(1, "new"))
    cluster.run_until(lambda: all(1 in process.replies() for process in cluster))
    cluster[away].start(cluster.now)
    assert names(cluster[away]) == ["base"]
    cluster.run_until(lambda: all_have(cluster, "base", "new"))
    assert cluster[away].replies() == {}


def test_a_member_that_was_away_starts_with_what_it_knew_and_makes_no_change_twice() -> None:
    cluster = cluster_of()
    cluster.send_all(create(1, "new"))
    cluster.run_until(lambda: all(1 in process.replies() for process in cluster))
    away = cluster[slave(cluster)]
    away.crash()
    changes_before = len(away.service_records)
    away.start(cluster.now)
    assert names(away) == ["base", "new"]
    cluster.run_for(3 * TIMEOUT_NS)
    assert names(away) == ["base", "new"]
    assert len(away.service_records) == changes_before, "nothing was deleted and created again"


def test_a_queue_that_was_deleted_and_created_while_a_member_was_away_is_another_queue() -> None:
    cluster = cluster_of()
    cluster.send_all(create(1, "new"))
    cluster.run_until(lambda: all_have(cluster, "base", "new"))
    away = cluster[slave(cluster)]
    cluster.run_until(lambda: (followed(away) or ConfigurationFollowed("", 0, {})).created.get("P/S/new", 0) > 0)
    away.run(cluster.now, [Write("P", "New", SampleIdentity(WRITER, 1), b"of the first one")])
    assert len(away.member.engine.hosted.by_name["P/S/new"].held) == 1
    away.crash()
    cluster.send_all(delete(2, "new"))
    cluster.run_until(lambda: all(2 in process.replies() for process in cluster))
    cluster.send_all(create(3, "new"))
    cluster.run_until(lambda: all(3 in process.replies() for process in cluster))
    mark = {"QueueCreated": 0, "QueueDeleted": 0}
    before = len(away.service_records)
    away.start(cluster.now)
    cluster.run_for(3 * TIMEOUT_NS)
    for record in away.service_records[before:]:
        if type(record).__name__ in mark:
            mark[type(record).__name__] += 1
    assert mark == {"QueueCreated": 1, "QueueDeleted": 1}
    assert len(away.member.engine.hosted.by_name["P/S/new"].held) == 0


def test_without_a_quorum_a_command_is_refused_and_changes_nothing_later() -> None:
    cluster = cluster_of()
    alone = cluster[slave(cluster)]
    for process in cluster.processes.values():
        if process is not alone:
            process.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.send(alone.name, create(1, "new"))
    cluster.run_for(4 * TIMEOUT_NS)
    code, text = alone.replies()[1]
    assert code == "ERROR"
    assert text.startswith("the configuration has no master now, and this member does not carry out the command")
    for process in cluster.processes.values():
        if process is not alone:
            process.start(cluster.now)
    cluster.run_for(6 * TIMEOUT_NS)
    assert all_have(cluster, "base")


def test_a_master_without_its_quorum_answers_that_nothing_is_decided() -> None:
    cluster = cluster_of()
    leader = cluster[master(cluster)]
    for process in cluster.processes.values():
        if process is not leader:
            process.crash()
    cluster.send(leader.name, create(1, "new"))
    cluster.run_until(lambda: 1 in leader.replies())
    assert leader.replies()[1][1].startswith("it is not decided what becomes of the command")
    assert names(leader) == ["base"], "it is in the log, and not committed"
    for process in cluster.processes.values():
        if process is not leader:
            process.start(cluster.now)
    cluster.run_for(6 * TIMEOUT_NS)
    assert all_have(cluster, "base", "new") or all_have(cluster, "base")


def test_a_configuration_that_lost_a_majority_of_its_logs_goes_on_by_an_operator_s_word() -> None:
    """Found by a world: the word was taken for queues alone, and the cluster followed no command any more."""
    cluster = cluster_of()
    cluster.send_all(create(1, "new"))
    cluster.run_until(lambda: all_have(cluster, "base", "new"))
    for name in "ab":
        cluster[name].crash()
    for name in "ab":
        cluster[name].start(cluster.now, is_lost=True)
    cluster.run_for(10 * TIMEOUT_NS)
    cluster.send("c", create(2, "newer"))
    cluster.run_for(4 * TIMEOUT_NS)
    code, text = cluster["c"].replies()[2]
    assert code == "ERROR"
    assert "1 of 3 replicas are there with their log" in text
    assert "`qsctl member force-quorum --configuration`" in text
    for number, is_trial in ((3, True), (4, False)):
        cluster.send_all(request(number, ForceQuorum(None, is_trial)))
        assert {process.replies()[number][0] for process in cluster} == {"OK"}
        assert all(process.member.replicas[CONFIGURATION_STREAM].master == "" for process in cluster)
        cluster.run_for(TIMEOUT_NS // 8)
    cluster.run_until(lambda: any(each.member.replicas[CONFIGURATION_STREAM].is_master for each in cluster))
    cluster.send_all(create(5, "newest"))
    cluster.run_until(lambda: all_have(cluster, "base", "new", "newest"))


def test_members_with_other_files_adopt_the_clusters_configuration_and_report_it() -> None:
    cluster = cluster_of(files={"c": (plain("other"), BASE)})
    leader = master(cluster)
    cluster.run_for(2 * TIMEOUT_NS)
    expected = names(cluster[leader])
    assert all_have(cluster, *expected)
    differing = [each for each in cluster if any(report.is_adoption for report in each.member.configuration.reports)]
    assert [each.name for each in differing] == (["a", "b"] if leader == "c" else ["c"])


def test_a_change_that_a_member_cannot_make_waits_and_those_behind_it_too() -> None:
    cluster = cluster_of()
    ill = cluster[slave(cluster)]
    assert ill.member.configuration is not None
    refuses = True

    def admit(asked: CommandRequest) -> CommandReply | None:
        reply = Reply(ReturnCode.ERROR, "the disk is full")
        return CommandReply(asked.request, ill.name, reply) if refuses else None

    ill.member.configuration.admit = admit
    cluster.send_all(create(1, "one"))
    cluster.run_until(lambda: all(1 in each.replies() for each in cluster if each is not ill))
    cluster.send_all(create(2, "two"))
    cluster.run_until(lambda: all(2 in each.replies() for each in cluster if each is not ill))
    assert names(ill) == ["base"]
    assert "the disk is full" in [each.text for each in ill.member.configuration.reports if each.is_refusal]
    cluster.run_until(lambda: 1 in ill.replies())
    assert "this member cannot yet: the disk is full" in ill.replies()[1][1]
    refuses = False
    cluster.run_until(lambda: names(ill) == ["base", "one", "two"])


def test_a_log_is_compacted_and_an_absent_member_installs_the_snapshot() -> None:
    cluster = Cluster(3, BASE, configuration=SETTINGS)
    for process in cluster:
        process.crash()
        process.compacted_over_count = 6
        process.start(cluster.now)
    cluster.run_until(lambda: all(followed(process) for process in cluster))
    away = cluster[slave(cluster)]
    away.crash()
    for number in range(1, 30, 2):
        cluster.send_all(create(number, "new"))
        cluster.run_until(lambda number=number: all(number in process.replies() for process in cluster))  # type: ignore[misc]
        cluster.send_all(delete(number + 1, "new"))
        cluster.run_until(lambda number=number: all(number + 1 in process.replies() for process in cluster))  # type: ignore[misc]
    cluster.send_all(create(100, "last"))
    cluster.run_until(lambda: all(100 in process.replies() for process in cluster))
    assert cluster[master(cluster)].member.replicas[CONFIGURATION_STREAM].log.base.index > 1
    away.start(cluster.now)
    cluster.run_until(lambda: all_have(cluster, "base", "last"))
    cluster.send_all(create(1, "new"))
    cluster.run_for(2 * TIMEOUT_NS)
    assert all_have(cluster, "base", "last"), "a copy of a command that came late is not carried out"


def test_subscribers_come_and_go_with_their_queues() -> None:
    cluster = cluster_of()
    participant = parse_resource("/domain_participant/P")
    settings = SharedSubscriberSettings("T", (), (plain("x"),))
    cluster.send_all(request(1, CreateSubscriber(participant, settings)))
    cluster.run_until(lambda: all_have(cluster, "base", "x"))
    cluster.send_all(request(2, DeleteSubscriber(parse_resource("/domain_participant/P/shared_subscriber/T"))))
    cluster.run_until(lambda: all(2 in process.replies() for process in cluster))
    assert all_have(cluster, "base")


def test_a_replicated_queue_is_created_by_all_members_and_works() -> None:
    cluster = cluster_of()
    cluster.send_all(request(1, CreateQueue(SUBSCRIBER, queue("orders"))))
    cluster.run_until(lambda: all(1 in process.replies() for process in cluster))
    stream = "P/S/orders"
    cluster.run_until(lambda: any(process.member.replicas[stream].is_master for process in cluster))
    cluster.send_all(Write("P", "Orders", SampleIdentity(WRITER, 1), b"one", attempt=1))
    cluster.run_until(lambda: all(len(each.member.engine.hosted.by_name[stream].held) == 1 for each in cluster))


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x93\x01\x02\x03"])
def test_what_is_no_command_changes_nothing(payload: bytes) -> None:
    configuration = ClusterConfiguration("configuration", 3)
    configuration.play(1, Enqueued("configuration", 1, SampleIdentity(WRITER, 1), 0, 0, payload=payload))
    (outcome,) = configuration.outcomes.values()
    assert outcome.retcode is ReturnCode.ERROR
    assert "what was to be carried out is not a command" in outcome.text


class Log:
    """A log of commands, and a configuration that follows it."""

    def __init__(self, *queues: SharedReaderQueueSettings) -> None:
        subscriber = SharedSubscriberSettings("S", queues=queues)
        self.index = 1
        self.records: list[QueueRecord] = [
            ConfigurationKnown(CONFIGURATION_STREAM, "a 1 1 1", {"P": (subscriber,)}, {})
        ]
        self.known = self.replayed()

    def append(self, number: int, command: Command, writer: Guid = ADMINISTRATOR) -> Reply:
        self.index += 1
        assert isinstance(command, Change)
        identity = SampleIdentity(writer, number)
        record = Enqueued(CONFIGURATION_STREAM, self.index, identity, 0, 0, payload=encoded(command))
        self.records.append(record)
        self.known.play(self.index, record)
        return self.known.outcomes[identity]

    def replayed(self, base: int = 0) -> ClusterConfiguration:
        """Return the configuration of a member that follows all entries, or those behind a snapshot of `base`."""
        configuration = ClusterConfiguration(CONFIGURATION_STREAM, 3)
        for index, record in enumerate(self.records[:base], 1):
            configuration.play(index, record)
        if base:
            snapshot = tuple(configuration.snapshot())
            configuration = ClusterConfiguration(CONFIGURATION_STREAM, 3)
            configuration.install(base, snapshot)
        for index, record in enumerate(self.records[base:], base + 1):
            configuration.play(index, record)
        return configuration


OTHER = Guid(b"o" * 16)
DELETE = delete(1, "base").command
CHANGE = UpdateQueue(
    parse_resource(f"{SUBSCRIBER}/shared_reader_queue/base"), replace(BASE, limits=ResourceLimitSettings(max_count=7))
)


@pytest.mark.parametrize("late", [DELETE, DeleteSubscriber(SUBSCRIBER), CHANGE], ids=lambda each: type(each).__name__)
def test_a_command_that_waited_is_not_carried_out_at_a_later_queue_of_the_name(late: Change) -> None:
    """Found by a world: a DELETE that was undecided was carried out behind the CREATE, and took its samples."""
    log = Log(BASE)
    waiting = log.known.naming(late)
    again: Command = CreateQueue(SUBSCRIBER, BASE)
    if isinstance(late, DeleteSubscriber):
        again = CreateSubscriber(parse_resource("/domain_participant/P"), SharedSubscriberSettings("S", queues=(BASE,)))
    deletion = DELETE if isinstance(late, UpdateQueue) else late
    assert log.append(1, deletion, OTHER).retcode is ReturnCode.OK
    assert log.append(2, again, OTHER).retcode is ReturnCode.OK
    outcome = log.append(1, waiting)
    assert outcome.retcode is ReturnCode.ERROR
    assert "is another one than the member knew that got the command" in outcome.text
    assert log.known.subscribers()["P"][0].queues == (BASE,)
    assert log.append(2, log.known.naming(late)).retcode is ReturnCode.OK, "and the one that is meant now is"


def test_a_queue_is_deleted_that_was_changed_since_or_came_with_its_subscriber() -> None:
    log = Log(BASE)
    waiting = log.known.naming(DELETE)
    assert log.append(1, log.known.naming(CHANGE), OTHER).retcode is ReturnCode.OK
    assert log.append(2, waiting).retcode is ReturnCode.OK
    participant = parse_resource("/domain_participant/P")
    log.append(3, log.known.naming(DeleteSubscriber(SUBSCRIBER)))
    log.append(4, CreateSubscriber(participant, SharedSubscriberSettings("S", queues=(BASE,))))
    waiting = log.known.naming(DELETE)
    assert log.append(5, waiting).retcode is ReturnCode.OK


def test_a_member_that_knows_nothing_yet_deletes_nothing() -> None:
    log = Log(BASE)
    outcome = log.append(1, ClusterConfiguration(CONFIGURATION_STREAM, 3).naming(DELETE))
    assert outcome.retcode is ReturnCode.ERROR
    assert "did not know yet what the cluster has" in outcome.text


def test_a_command_overtaken_by_a_later_one_of_its_administrator_is_not_carried_out() -> None:
    """Found by a world: a stopped member found the DELETE when it went on, behind the CREATE that came after it."""
    log = Log(BASE)
    assert log.append(2, DELETE).retcode is ReturnCode.OK
    assert log.append(3, CreateQueue(SUBSCRIBER, BASE)).retcode is ReturnCode.OK
    outcome = log.append(1, DELETE)
    assert outcome.retcode is ReturnCode.ERROR
    assert outcome.text.startswith("a later command of the same administrator was carried out before")
    assert log.append(1, DELETE, OTHER).retcode is ReturnCode.OK, "whose numbers are others"


@pytest.mark.slow
def test_a_superseded_command_has_the_same_outcome_after_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_configuration, "REMEMBERED_MAX", 4)
    draw = Random(5)
    for _ in range(60):
        log = Log(BASE)
        writers = [ADMINISTRATOR, OTHER]
        for _ in range(14):
            command = draw.choice([DELETE, CreateQueue(SUBSCRIBER, BASE)])
            log.append(draw.randrange(1, 9), command, draw.choice(writers))
        for base in range(1, len(log.records)):
            behind = log.replayed(base)
            assert behind.subscribers() == log.known.subscribers(), base
            assert list(behind.outcomes) == list(log.known.outcomes), base
