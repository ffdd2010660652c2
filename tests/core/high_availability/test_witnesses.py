"""A witness: it votes and holds the log without payloads, is no master, and what it has is no content."""

from __future__ import annotations

from random import Random

import pytest

from qsctl.core.admin.command import ChangeMembers, Drain, ForceQuorum, GetMessages, MemberAction
from qsctl.core.high_availability._members import WITNESS, GroupMembers, changed_members
from qsctl.core.high_availability.roles import Role
from qsctl.core.high_availability.versions import WITNESSES
from qsctl.core.records import Enqueued, MembersChanged
from qsctl.errors import Refused
from qsctl.resource import ResourceKind
from tests.core.high_availability.changed_cluster import ADD, PROMOTE, REMOVE, Changed, filled, has_caught_up, voters
from tests.core.high_availability.cluster import STREAM, TIMEOUT_NS, Process, acknowledge, held, join, write
from tests.core.high_availability.member_commands import RESOURCE, command

ADD_WITNESS = MemberAction.ADD_WITNESS


def payload_bytes(process: Process) -> int:
    """Octets of payloads in the log and its snapshot, in the store, and in the queue of a process."""
    log, store = process.replica.log, process.stores[STREAM]
    records = [*log.base.records, *log._records, *store.snapshot_records, *store.records]
    samples = process.member.engine.hosted.by_name[STREAM].held
    return sum(len(each.payload) for each in records if isinstance(each, Enqueued)) + sum(
        len(each.payload or b"") for each in samples
    )


def two_sites(*, compacted_over_count: int = 8_192) -> tuple[Changed, Process, Process, Process]:
    """A cluster of two members and a witness, which holds three samples: the master, the other one, the witness."""
    cluster = Changed(3)
    for process in cluster:
        process.compacted_over_count = compacted_over_count
        process.start(0)
    master = cluster.elect()
    cluster.send_all(*(write(number) for number in range(1, 4)))
    other, gone = (process for process in cluster if process is not master)
    witness = cluster.join("w")
    witness.compacted_over_count = compacted_over_count
    witness.start(cluster.now, is_new=True)
    cluster.change(master, ADD_WITNESS, "w")
    cluster.run_until(lambda: has_caught_up(master, witness))
    cluster.change(master, PROMOTE, "w")
    cluster.change(master, REMOVE, gone.name)
    gone.crash()
    del cluster.processes[gone.name]
    cluster.run_for(TIMEOUT_NS)
    assert voters(master) == sorted([master.name, other.name, "w"])
    return cluster, master, other, witness


def test_witness_holds_every_entry_and_no_payload() -> None:
    cluster, master, other, witness = two_sites(compacted_over_count=30)
    cluster.send_all(join())
    for number in range(4, 60):
        cluster.send_all(write(number, b"x" * (number * 10)))
        cluster.tick()
    cluster.run_until(lambda: witness.replica.log.commit_index == master.replica.log.commit_index)
    cluster.run_for(TIMEOUT_NS)
    assert witness.replica.log.last == master.replica.log.last
    assert witness.replica.log.base.index > 0, "it compacts"
    assert held(witness) == held(other) == held(master)
    assert payload_bytes(witness) == 0
    assert payload_bytes(other) > 0
    assert len(witness.replica.producers.staging) == 0
    witness.crash()
    witness.start(cluster.now)
    cluster.run_for(3 * TIMEOUT_NS)
    assert payload_bytes(witness) == 0


def test_witness_that_lost_its_disk_is_sent_a_snapshot_without_payloads() -> None:
    cluster, master, _, witness = two_sites(compacted_over_count=10)
    cluster.send_all(join())
    for number in range(4, 60):
        cluster.send_all(write(number), acknowledge(number - 2))
        cluster.tick()
    cluster.run_for(TIMEOUT_NS)
    assert master.replica.log.base.index > 0
    assert held(master)
    witness.crash()
    witness.start(cluster.now, is_lost=True)
    cluster.run_until(lambda: witness.replica.role is Role.SLAVE and held(witness) == held(master))
    assert payload_bytes(witness) == 0


def test_other_member_leads_once_the_master_is_gone_and_the_witness_never_does() -> None:
    cluster, master, other, witness = two_sites()
    for _ in range(4):
        master.crash()
        cluster.run_until(lambda: other.replica.is_master)  # noqa: B023
        cluster.run_for(TIMEOUT_NS)
        assert len(held(other)) == 3
        master.start(cluster.now)
        cluster.run_for(4 * TIMEOUT_NS)
        master, other = other, master
    master.crash()
    other.crash()
    witness.member.pop_changes()
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    assert Role.CANDIDATE not in {each.role for each in witness.member.pop_changes()}
    assert witness.replica.reason.startswith(WITNESS)
    other.start(cluster.now)
    cluster.run_until(lambda: other.replica.is_master)


def test_witness_is_one_of_the_quorum_that_is_left_after_a_drain() -> None:
    cluster, master, other, witness = two_sites()
    witness.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.send(master.name, command(1, Drain()))
    witness.start(cluster.now)
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.send(master.name, command(2, Drain()))
    cluster.run_until(lambda: other.replica.is_master)
    assert [(number, code) for number, (code, _) in master.replies().items() if number in (1, 2)] == [
        (1, "ERROR"),
        (2, "OK"),
    ]


def test_other_member_leads_whenever_the_master_is_lost_under_load() -> None:
    random, number = Random(7), 100
    cluster, master, other, _ = two_sites()
    for _ in range(15):
        for _ in range(random.randint(1, 40)):
            number += 1
            cluster.send_all(write(number))
            cluster.tick()
        cluster.cuts.add((master.name, other.name))
        for _ in range(random.randint(0, 10)):
            number += 1
            cluster.send_all(write(number))
            cluster.tick()
        accepted = {each for process in cluster for each, response in process.answers() if response == 1}
        master.crash()
        cluster.heal()
        cluster.run_until(lambda: other.replica.is_master, within_ns=8 * TIMEOUT_NS)  # noqa: B023
        cluster.run_for(TIMEOUT_NS)
        assert accepted <= {int(each.split()[0]) for each in held(other)}
        master.start(cluster.now)
        cluster.run_until(lambda: held(master) == held(other))  # noqa: B023
        cluster.run_for(2 * TIMEOUT_NS)
        master, other = other, master


def test_samples_are_accepted_again_soon_after_the_other_member_is_lost() -> None:
    cluster, master, other, _ = two_sites()
    other.crash()
    cluster.send(master.name, write(9))
    cluster.run_for(TIMEOUT_NS)
    assert (9, 1) in master.answers()


def test_witness_that_is_sent_more_than_the_other_member_holds_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.core.high_availability._progress.Progress.held_index", lambda self, now, within: None)
    with pytest.raises(AssertionError):
        test_other_member_leads_whenever_the_master_is_lost_under_load()


def test_member_that_lacks_an_accepted_sample_is_not_elected_by_the_witness() -> None:
    cluster, master, other, witness = two_sites()
    other.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.send(master.name, write(9))
    cluster.run_until(lambda: (9, 1) in master.answers())
    master.crash()
    other.start(cluster.now)
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    assert "no replica that has a vote reaches entry" in other.member.statuses()[STREAM].reason
    master.start(cluster.now)
    cluster.run_until(lambda: len(held(other)) == 4)
    assert cluster.masters() == [master.name]
    assert witness.replica.role is Role.SLAVE


def test_log_of_a_witness_is_no_content_for_a_forced_quorum() -> None:
    cluster, master, other, witness = two_sites()
    other.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.send(master.name, write(9))
    cluster.run_until(lambda: (9, 1) in master.answers())
    master.crash()
    other.start(cluster.now)
    cluster.run_for(5 * TIMEOUT_NS)
    for number, is_trial in ((1, True), (2, False)):
        cluster.send_all(command(number, ForceQuorum(RESOURCE, is_trial)))
        assert {process.replies()[number][0] for process in cluster} == {"OK"}
    assert "this witness drops its" in witness.replies()[1][1]
    cluster.run_until(lambda: other.replica.is_master)
    assert len(held(other)) == 3, "the sample that only the master had is lost"
    cluster.send(other.name, write(10))
    cluster.run_until(lambda: (10, 1) in other.answers())
    assert payload_bytes(witness) == 0


def test_producers_are_refused_by_a_witness_and_samples_are_not_read_there() -> None:
    cluster, _, _, witness = two_sites()
    cluster.send("w", write(9))
    assert witness.answers() == [(9, 0)]
    assert len(witness.replica.producers.staging) == 0
    for number, allows_stale in enumerate((False, True), 1):
        cluster.send("w", command(number, GetMessages(RESOURCE.at(ResourceKind.MESSAGE), allows_stale=allows_stale)))
        assert "w is a witness, and holds no samples" in witness.replies()[number][1]


def test_member_with_payloads_drops_them_before_it_is_a_witness() -> None:
    cluster, master, (other, changing) = filled()
    joined = cluster.grow(master, "d")
    cluster.change(master, REMOVE, changing.name)
    cluster.run_for(TIMEOUT_NS)
    assert payload_bytes(changing) > 0
    cluster.change(master, ADD_WITNESS, changing.name)
    cluster.run_until(lambda: has_caught_up(master, changing))
    cluster.change(master, PROMOTE, changing.name)
    cluster.run_until(lambda: changing.replica.role is Role.SLAVE)
    cluster.run_for(TIMEOUT_NS)
    assert payload_bytes(changing) == 0
    assert held(changing) == held(other) == held(joined)


def test_nothing_is_sent_to_a_witness_before_its_addition_is_committed() -> None:
    cluster, master, others = filled()
    joined = cluster.join("w")
    for each in others:
        each.syncs = False
    cluster.request(master, ADD_WITNESS, "w")
    cluster.run_for(TIMEOUT_NS // 2)
    assert master.replica.members.is_witness("w")
    assert joined.replica.log.last_index == 0
    for each in others:
        each.syncs = True
    cluster.run_until(lambda: joined.replica.log.last_index == master.replica.log.last_index)


def test_status_names_the_witness() -> None:
    _, master, other, _ = two_sites()
    found = {each.name: (each.is_voter, each.is_witness) for each in master.member.statuses()[STREAM].members}
    assert found == {master.name: (True, False), other.name: (True, False), "w": (True, True)}


def test_list_with_a_witness_is_refused_while_an_earlier_version_is_present() -> None:
    cluster, master, (other, _) = filled()
    cluster.join("w")
    cluster.run_for(TIMEOUT_NS)
    master.member.versions.note(other.name, WITNESSES - 1)
    cluster.send(master.name, command(1, ChangeMembers(RESOURCE, ADD_WITNESS, "w")))
    code, text = master.replies()[1]
    assert code == "ERROR"
    assert f"{other.name} cannot follow a list with a witness" in text


@pytest.mark.parametrize(
    ("given", "action", "name", "reason"),
    [
        (MembersChanged("Q", ("a",), ("w",), ("w",)), PROMOTE, "w", "1 hold payloads and 1 is a witness"),
        (MembersChanged("Q", ("a", "b", "w"), (), ("w",)), REMOVE, "b", "1 hold payloads and 1 is a witness"),
        (MembersChanged("Q", ("a", "b", "v", "w"), ("x",), ("v", "w", "x")), PROMOTE, "x", "and 3 are witnesses"),
        (MembersChanged("Q", ("a", "b"), (), ("w",)), ADD, "w", "w was a witness, whose log has no payloads"),
        (MembersChanged("Q", ("a", "b", "w"), (), ("w",)), ADD_WITNESS, "w", "w is a member already"),
    ],
)
def test_list_with_too_few_payloads_is_refused(
    given: MembersChanged, action: MemberAction, name: str, reason: str
) -> None:
    with pytest.raises(Refused) as raised:
        changed_members(given, action, name)
    assert reason in str(raised.value)


def test_former_witness_stays_one_when_it_is_removed_and_added_again() -> None:
    members = changed_members(MembersChanged("Q", ("a", "b")), ADD_WITNESS, "w")
    members = changed_members(changed_members(members, PROMOTE, "w"), REMOVE, "w")
    assert members == MembersChanged("Q", ("a", "b"), (), ("w",))
    assert changed_members(members, ADD_WITNESS, "w") == MembersChanged("Q", ("a", "b"), ("w",), ("w",))


def test_witness_that_begins_elections_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    is_witness = GroupMembers.is_witness
    monkeypatch.setattr(GroupMembers, "is_witness", lambda self, name: name != self.name and is_witness(self, name))
    with pytest.raises(AssertionError):
        test_other_member_leads_once_the_master_is_gone_and_the_witness_never_does()


def test_master_that_sends_a_witness_payloads_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.core.high_availability._mastery.for_witness", list)
    with pytest.raises(AssertionError):
        test_witness_holds_every_entry_and_no_payload()


def test_witness_that_keeps_its_payloads_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.core.high_availability._log.ReplicatedLog.has_payloads", False)
    with pytest.raises(AssertionError):
        test_member_with_payloads_drops_them_before_it_is_a_witness()


def test_witness_whose_log_counts_as_content_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.core.high_availability._learner.Learner._with_payloads", lambda self, rolls: rolls)
    monkeypatch.setattr(
        "qsctl.core.high_availability.replica.Replica._longest",
        lambda self, formation: max(self.log.last, formation.floor),
    )
    with pytest.raises(AssertionError):
        test_log_of_a_witness_is_no_content_for_a_forced_quorum()


def test_master_that_sends_entries_before_the_addition_is_committed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupMembers, "is_served", lambda self, name: True)
    with pytest.raises(AssertionError):
        test_nothing_is_sent_to_a_witness_before_its_addition_is_committed()
