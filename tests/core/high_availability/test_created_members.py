"""A queue that is created after a change of the members begins with those of the configuration."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from msgspec import structs

from qsctl.core.admin.command import (
    ChangeMembers,
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    Drain,
    FirstMembers,
    MemberAction,
)
from qsctl.core.high_availability.cluster_configuration import (
    CONFIGURATION_STREAM,
    Change,
    ClusterConfiguration,
    encoded,
)
from qsctl.core.high_availability.replica import DRAINED, Replica
from qsctl.core.high_availability.roles import Role
from qsctl.core.high_availability.versions import FIRST_MEMBERS
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.records import ConfigurationKnown, Enqueued
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.identity import SampleIdentity
from qsctl.resource import parse_resource
from tests.core.high_availability.changed_cluster import ADD, PROMOTE, REMOVE
from tests.core.high_availability.cluster import STREAM, TIMEOUT_NS, WRITER, Cluster, Process, queue, write
from tests.core.high_availability.member_commands import RESOURCE, SUBSCRIBER, command

SETTINGS = ReplicationSettings(True, 3, TIMEOUT_NS, False, 2 * TIMEOUT_NS)
BASE = replace(queue("base"), replication=ReplicationSettings())
CREATE = CreateQueue(SUBSCRIBER, queue("orders"))


class Configured(Cluster):
    """A cluster whose configuration is replicated and whose members change."""

    number = 0

    def __init__(self) -> None:
        super().__init__(3, BASE, configuration=SETTINGS)
        self.run_until(lambda: all(each.member.engine.hosted.followed for each in self))

    def master(self) -> Process:
        def masters() -> list[Process]:
            return [each for each in self if each.member.replicas[CONFIGURATION_STREAM].is_master]

        self.run_until(lambda: len(masters()) == 1)
        return masters()[0]

    def slaves(self) -> list[Process]:
        master = self.master()
        return [each for each in self if each is not master]

    def done(self, given: Command, *processes: Process) -> None:
        """Send a command to these processes, and wait until it is carried out."""
        self.number += 1
        for process in processes:
            self.send(process.name, command(self.number, given))
        self.run_until(lambda: all(self.number in each.replies() for each in processes))
        assert {each.replies()[self.number][0] for each in processes} == {"OK"}

    def change(self, action: MemberAction, name: str) -> None:
        self.done(ChangeMembers(None, action, name), self.master())

    def grow(self, name: str) -> Process:
        joined = self.join(name)
        self.change(ADD, name)
        self.run_until(lambda: self.has_caught_up(joined))
        self.change(PROMOTE, name)
        return joined

    def has_caught_up(self, joined: Process) -> bool:
        of_master = self.master().member.replicas[CONFIGURATION_STREAM]
        assert of_master.mastery is not None
        peer = of_master.mastery.progress[joined.name]
        return not peer.is_learner and peer.match_index >= of_master.log.commit_index

    def create(self) -> None:
        """Create a replicated queue, and wait until it has a master."""
        self.done(CREATE, *self)
        self.run_until(lambda: any(replica(each).is_master for each in self))

    def await_holding(self, count: int) -> None:
        self.run_until(lambda: all(len(each.member.engine.hosted.by_name[STREAM].held) == count for each in self))


def replica(process: Process) -> Replica:
    return process.member.replicas[STREAM]


def voters(process: Process) -> list[str]:
    return sorted(replica(process).members.voters)


def test_queue_created_after_an_addition_begins_with_the_added_member() -> None:
    cluster = Configured()
    cluster.grow("d")
    cluster.create()
    assert {tuple(voters(each)) for each in cluster} == {("a", "b", "c", "d")}
    cluster.send_all(write(1))
    cluster.await_holding(1)
    first, *_ = (each for each in cluster if not replica(each).is_master)
    first.crash()
    cluster.send_all(write(2))
    cluster.await_holding(2)
    next(iter(cluster)).crash()
    cluster.run_for(5 * TIMEOUT_NS)
    assert not [each for each in cluster if replica(each).is_master], "two of four are no quorum"


def test_queue_created_after_a_removal_begins_without_the_removed_member() -> None:
    cluster = Configured()
    removed = cluster.slaves()[0]
    cluster.change(REMOVE, removed.name)
    removed.crash()
    cluster.create()
    assert all(removed.name not in voters(each) and replica(each).members.quorum == 2 for each in cluster)


def test_queue_created_after_all_first_members_were_replaced_has_a_master() -> None:
    cluster = Configured()
    for gone, name in zip("abc", "def", strict=True):
        cluster.grow(name)
        cluster.change(REMOVE, gone)
        cluster.run_for(TIMEOUT_NS)
        cluster[gone].crash()
    cluster.create()
    assert {tuple(voters(each)) for each in cluster} == {("d", "e", "f")}


def test_member_that_was_away_creates_the_queue_with_the_same_members() -> None:
    cluster = Configured()
    cluster.grow("d")
    away = cluster.slaves()[0]
    away.crash()
    cluster.create()
    cluster.send_all(write(1))
    cluster.await_holding(1)
    away.start(cluster.now)
    cluster.run_until(lambda: STREAM in away.member.replicas)
    cluster.await_holding(1)
    assert voters(away) == [*"abcd"]


def test_members_survive_a_restart_of_all_before_the_log_lists_them() -> None:
    cluster = Configured()
    cluster.grow("d")
    for process in cluster:
        cluster.cut(process.name)  # no frame passes: nothing is elected in the new group
    cluster.heal()
    created = [*cluster]
    cluster.done(CREATE, *created)
    for process in created:
        process.stores[STREAM].records = []  # only the votes are stored
        process.crash()
        process.start(cluster.now)
        assert voters(process) == [*"abcd"]


def test_log_lists_the_members_so_that_one_that_lost_its_disk_learns_them() -> None:
    cluster = Configured()
    cluster.grow("d")
    cluster.create()
    cluster.send_all(write(1))
    cluster.await_holding(1)
    lost = cluster["d"]
    lost.crash()
    lost.start(cluster.now, is_lost=True)
    cluster.run_until(lambda: replica(lost).role is Role.SLAVE)
    assert voters(lost) == [*"abcd"]
    assert replica(lost).log.members_at(replica(lost).log.last_index) is not None


def test_member_without_a_vote_in_the_configuration_has_none_in_the_new_queue() -> None:
    cluster = Configured()
    joined = cluster.join("d")
    cluster.change(ADD, "d")
    cluster.run_until(lambda: cluster.has_caught_up(joined))
    cluster.create()
    cluster.send_all(write(1))
    cluster.await_holding(1)
    assert replica(joined).role is Role.LEARNER
    assert {tuple(voters(each)) for each in cluster} == {("a", "b", "c")}


def test_members_that_did_not_change_are_in_no_entry_of_a_creation() -> None:
    cluster = Configured()
    cluster.done(CREATE, *cluster)
    configuration = cluster["a"].member.configuration
    assert configuration is not None
    assert configuration.members_of([STREAM]) is None


def test_while_a_present_member_is_of_an_earlier_version_a_queue_begins_with_the_first_members() -> None:
    cluster = Configured()
    cluster.grow("d")
    for process in cluster:
        process.member.versions.note("d", FIRST_MEMBERS - 1)
    group = cluster.master().member.replicas[CONFIGURATION_STREAM]
    assert group.members_of_creations(cluster.now) is None
    for process in cluster:
        process.member.versions.note("d", FIRST_MEMBERS)
    assert group.members_of_creations(cluster.now) == FirstMembers(("a", "b", "c", "d"))


def test_queue_created_anew_has_the_members_of_its_latest_creation() -> None:
    participant, subscriber = parse_resource("/domain_participant/P"), SharedSubscriberSettings("S")
    created = CreateQueue(CREATE.subscriber, CREATE.settings, FirstMembers(("b", "c")))
    known = configuration_of(CreateSubscriber(participant, subscriber, FirstMembers(("a",))), created)
    assert known.members == {"P/S": FirstMembers(("a",)), STREAM: FirstMembers(("b", "c"))}
    again = configuration_of(CreateSubscriber(participant, subscriber), created, DeleteQueue(RESOURCE), CREATE)
    assert again.members == {}


def test_record_of_a_configuration_of_an_earlier_version_is_read() -> None:
    record = ConfigurationKnown(CONFIGURATION_STREAM, "a 1 1 1", {}, {STREAM: 3}, {STREAM: (("a", "b"), ("c",))})
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(record))
    earlier = msgspec.msgpack.decode(msgspec.msgpack.encode(fields[:-1]), type=ConfigurationKnown)
    assert earlier == structs.replace(record, members={})
    for each, members in ((record, {STREAM: FirstMembers(("a", "b"), ("c",))}), (earlier, {})):
        known = ClusterConfiguration(CONFIGURATION_STREAM, 3)
        known.install(4, (each,))
        assert known.members == members
        assert next(known.snapshot()) == each


def configuration_of(*commands: Change) -> ClusterConfiguration:
    """The configuration after these commands."""
    known = ClusterConfiguration(CONFIGURATION_STREAM, 3)
    known.play(1, ConfigurationKnown(CONFIGURATION_STREAM, "a 1 1 1", {"P": ()}, {}))
    for index, each in enumerate(commands, 2):
        identity = SampleIdentity(WRITER, index)
        known.play(index, Enqueued(CONFIGURATION_STREAM, index, identity, 0, 0, payload=encoded(each)))
    assert [each.retcode.name for each in known.outcomes.values()] == ["OK"] * len(commands)
    return known


def test_queue_that_is_created_at_a_drained_service_has_another_master() -> None:
    cluster = Configured()
    drained = cluster.master()
    cluster.run_for(TIMEOUT_NS)
    cluster.done(Drain(), drained)
    cluster.master()
    cluster.run_for(TIMEOUT_NS)
    cluster.create()
    drained.member.pop_changes()
    for process in cluster:
        if process is not drained:
            process.crash()
    cluster.run_for(5 * TIMEOUT_NS)
    assert {each.reason for each in drained.member.replicas.values()} == {DRAINED}
    assert Role.CANDIDATE not in {each.role for each in drained.member.pop_changes()}
