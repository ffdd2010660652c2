"""A master hands over by an operator's command, and a drained service is no master."""

from __future__ import annotations

from qsctl.core.admin.command import Command, Drain, StepDown
from qsctl.core.high_availability.replica import DRAINED
from qsctl.core.high_availability.roles import Role
from tests.core.high_availability.changed_cluster import ADD, REMOVE, Changed, filled
from tests.core.high_availability.cluster import TIMEOUT_NS, Cluster, Process, acknowledge, held, join, queue, write
from tests.core.high_availability.member_commands import RESOURCE, command

NUMBER = 1_000


def answered(cluster: Cluster, process: Process, given: Command, number: int = NUMBER) -> tuple[str, str]:
    cluster.send(process.name, command(number, given))
    cluster.run_until(lambda: number in process.replies())
    return process.replies()[number]


def test_master_hands_over_to_the_named_member_within_a_fraction_of_the_time_out() -> None:
    cluster, master, (first, second) = filled()
    for number, (leader, wanted) in enumerate(((master, second), (second, first), (first, master)), NUMBER):
        at = cluster.now
        reply = answered(cluster, leader, StepDown(RESOURCE, wanted.name), number)
        assert reply == ("OK", f"P/S/orders: {leader.name} hands over to {wanted.name}")
        cluster.run_until(lambda wanted=wanted: wanted.replica.is_master)  # type: ignore[misc]
        assert cluster.now - at <= TIMEOUT_NS // 2
        cluster.elect()
        cluster.run_for(TIMEOUT_NS // 2)
    cluster.run_for(5 * TIMEOUT_NS)
    assert cluster.masters() == [master.name], "and it stays"


def test_trial_of_a_step_down_names_the_successor_and_changes_nothing() -> None:
    cluster, master, (first, second) = filled()
    cluster.run_for(TIMEOUT_NS)
    code, text = answered(cluster, master, StepDown(RESOURCE, is_trial=True))
    assert code == "OK"
    assert text.endswith((f"hands over to {first.name}", f"hands over to {second.name}"))
    cluster.run_for(TIMEOUT_NS)
    assert cluster.masters() == [master.name]


def test_samples_that_arrive_during_a_hand_over_are_accepted_or_rejected() -> None:
    for size in (2, 3):
        cluster = Changed(size)
        master = cluster.elect()
        successor = next(process for process in cluster if process is not master)
        for number in range(1, 201):
            cluster.send_all(write(number))
            if number == 50:
                cluster.send(master.name, command(NUMBER, StepDown(RESOURCE, successor.name)))
            cluster.tick()
        cluster.run_for(2 * TIMEOUT_NS)
        assert cluster.masters() == [successor.name]
        assert master.replica.log.last.epoch == 2, "one election sufficed"
        accepted = {each for process in cluster for each, response in process.answers() if response == 1}
        rejected = {each for process in cluster for each, response in process.answers() if response == 0}
        assert [int(each.split()[0]) for each in held(successor)] == sorted(accepted)
        assert accepted | rejected == set(range(1, 201)), "what came between two masters is rejected, and written again"
        assert len(accepted) > 190


def test_step_down_is_refused_where_no_other_voter_holds_all() -> None:
    cluster, master, (first, second) = filled()
    joined = cluster.join("d")
    cluster.change(master, ADD, "d")
    cluster.run_for(TIMEOUT_NS)
    first.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    second.syncs = False
    cluster.send_all(write(9))
    commit_index = master.replica.log.commit_index
    for number, (name, reason) in enumerate(
        (
            (first.name, f"{first.name} does not answer, or lacks some of the {commit_index} committed entries"),
            (joined.name, "d is not another member that has a vote"),
            (master.name, f"{master.name} is not another member that has a vote"),
            ("z", "z is not another member that has a vote"),
        ),
        NUMBER,
    ):
        code, text = answered(cluster, master, StepDown(RESOURCE, name), number)
        assert code == "ERROR"
        assert reason in text
    code, text = answered(cluster, second, StepDown(RESOURCE), 9_000)
    assert (code, f"{second.name} is not its master; {master.name} is" in text) == ("ERROR", True)


def test_queue_sends_nothing_during_a_hand_over_and_goes_on_once_it_is_given_up() -> None:
    cluster, master, (first, second) = filled()
    cluster.send_all(join(threshold=1))
    cluster.run_until(lambda: len(master.deliveries()) == 2)
    cluster.run_for(TIMEOUT_NS)
    first.syncs = False
    for each in (master, second):
        cluster.send(each.name, write(9))  # the successor does not confirm it
    cluster.run_for(TIMEOUT_NS // 10)
    cluster.send(master.name, command(NUMBER, StepDown(RESOURCE, first.name)))
    cluster.send(master.name, acknowledge(1))
    cluster.run_for(TIMEOUT_NS * 4 // 10)
    assert len(held(master)) == 3, "the acknowledgment counts"
    assert len(master.deliveries()) == 2
    cluster.run_for(TIMEOUT_NS * 4 // 10)
    assert master.replica.is_master
    assert [each.identity.sequence_number for each in master.deliveries()] == [1, 2, 3]


def test_hand_over_to_a_member_that_is_gone_by_then_is_given_up_and_samples_go_on() -> None:
    cluster, master, (first, second) = filled()
    cluster.run_for(TIMEOUT_NS)
    cluster.send_all(write(8))  # the successor does not hold it yet
    first.crash()
    cluster.send(master.name, command(NUMBER, StepDown(RESOURCE, first.name)))
    cluster.send(master.name, write(9))
    cluster.send(second.name, write(9))
    cluster.run_until(lambda: len(cluster.masters()) == 1 and len(held(cluster[cluster.masters()[0]])) == 5)
    assert master.is_up


def test_drained_service_hands_over_everything_answers_then_and_is_no_master_again() -> None:
    cluster = Changed(3, queue(), queue("other"))
    cluster.run_until(lambda: led(cluster) == 2)
    drained = next(process for process in cluster if any(each.is_master for each in process.member.replicas.values()))
    cluster.run_for(TIMEOUT_NS)
    code, text = answered(cluster, drained, Drain(is_trial=True))
    assert code == "OK"
    assert "orders to " in text or "other to " in text
    assert not drained.member.preference.is_drained
    code, text = answered(cluster, drained, Drain(), NUMBER + 1)
    assert (code, text) == ("OK", f"{drained.name} is drained: it is the master of nothing, and remains so")
    assert not any(each.is_master for each in drained.member.replicas.values())
    cluster.run_until(lambda: led(cluster) == 2)
    for process in cluster:
        if process is not drained:
            process.crash()
    drained.member.pop_changes()
    cluster.run_for(5 * TIMEOUT_NS)
    assert Role.CANDIDATE not in {each.role for each in drained.member.pop_changes()}
    assert {each.reason for each in drained.member.replicas.values()} == {DRAINED}
    drained.start(cluster.now)
    cluster.run_for(3 * TIMEOUT_NS)
    assert {each.role for each in drained.member.replicas.values()} == {Role.CANDIDATE}, "a restart ends it"


def test_candidate_that_is_drained_ceases_at_once() -> None:
    cluster, master, (first, second) = filled()
    master.crash()
    second.crash()
    cluster.run_until(lambda: first.replica.role is Role.CANDIDATE)
    assert answered(cluster, first, Drain())[0] == "OK"
    assert (first.replica.role, first.replica.reason) == (Role.SLAVE, DRAINED)
    first.member.pop_changes()
    second.start(cluster.now)
    cluster.run_until(lambda: second.replica.is_master)
    assert Role.CANDIDATE not in {each.role for each in first.member.pop_changes()}


def test_last_voter_is_drained_once_another_one_is_promoted() -> None:
    cluster, master, others = filled()
    for other in others:
        cluster.change(master, REMOVE, other.name)
    code, text = answered(cluster, master, Drain())
    assert (code, text.partition(". ")[0]) == ("ERROR", f"{master.replica.stream}: {master.name} is the only voter")
    assert not master.member.preference.is_drained
    cluster.send(master.name, write(9))
    cluster.run_until(lambda: (9, 1) in master.answers())
    joined = cluster.grow(master, "d")
    cluster.run_until(lambda: joined.replica.role is Role.SLAVE)
    code, text = answered(cluster, master, Drain(), NUMBER + 1)
    assert (code, f"of the 2 voters only 1 would be left without {master.name}" in text) == ("ERROR", True)
    another = cluster.grow(master, "e")
    cluster.run_until(lambda: another.replica.role is Role.SLAVE)
    assert answered(cluster, master, Drain(), NUMBER + 2)[0] == "OK"
    cluster.run_until(lambda: joined.replica.is_master or another.replica.is_master)
    assert len(held(joined)) == len(held(another)) == 4


def test_drain_is_refused_where_the_voters_that_would_be_left_are_no_quorum() -> None:
    cluster, master, (first, _) = filled()
    cluster.run_for(TIMEOUT_NS)
    assert answered(cluster, first, Drain())[0] == "OK"
    cluster.run_for(TIMEOUT_NS)
    for number, is_trial in enumerate((True, False), NUMBER + 1):
        code, text = answered(cluster, master, Drain(is_trial), number)
        assert code == "ERROR"
        assert f"of the 3 voters only 1 would be left without {master.name}, and 2 are a quorum" in text
    first.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    assert answered(cluster, master, Drain(), NUMBER + 3)[0] == "ERROR"
    assert not master.member.preference.is_drained
    assert cluster.masters() == [master.name]
    first.start(cluster.now)
    cluster.run_for(2 * TIMEOUT_NS)
    assert answered(cluster, master, Drain(), NUMBER + 4)[0] == "OK"


def test_drain_of_a_service_that_is_no_master_is_answered_at_once() -> None:
    cluster, master, (slave, _) = filled()
    assert answered(cluster, slave, Drain())[0] == "OK"
    master.crash()
    successor = cluster.elect()
    assert successor is not slave


def led(cluster: Cluster) -> int:
    """The number of groups that have a master."""
    return sum(each.is_master for process in cluster for each in process.member.replicas.values())
