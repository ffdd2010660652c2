"""The plans of replacing a member and of spreading masters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from qsctl.cli.administer._member_moves import MemberReplacement, Move, check_spared, moves_to_spread
from qsctl.cli.administer._member_results import MemberRow, members_seen
from qsctl.client.administration import FromService
from qsctl.core.admin.command import MemberAction
from qsctl.core.statistics.status import MemberStatus, ReplicationStatus, SharedReaderQueueStatus
from qsctl.errors import Refused
from qsctl.instant import SECOND_NS
from tests.transport.monitoring_bodies import STATUS

ADD, PROMOTE, REMOVE = MemberAction.ADD, MemberAction.PROMOTE, MemberAction.REMOVE


def led(
    queue: str, master: str, voters: Sequence[str], learners: Sequence[str] = (), *, behind: str = "", group: str = ""
) -> FromService[SharedReaderQueueStatus]:
    """The status of a queue at its master."""
    members = [MemberStatus(name, True, "slave", 9, 9, 0, 0, 0, 0, 8, "ok") for name in voters]
    members += [MemberStatus(name, False, "learner", 9, 9, 0, 0, 0, 0, 8, "ok") for name in learners]
    rows = tuple(
        structs.replace(
            each,
            role="master" if each.name == master else each.role,
            lag_ns=2 * SECOND_NS if each.name in behind else 0,
            lag_count=int(each.name in behind),
        )
        for each in members
    )
    replication = ReplicationStatus("master", 1, master, 3, 2, 3, True, 0, 9, 9, "", rows, group)
    return FromService(master, structs.replace(STATUS, queue_name=queue, replication=replication))


def rows(voters: str, learners: str = "", master: str = "B") -> list[MemberRow]:
    return members_seen([led("Q", master, [*voters], [*learners])])


@pytest.mark.parametrize(
    ("voters", "learners", "step", "left"),
    [
        ("ABC", "", (ADD, "D"), ["add D", "promote D", "remove A"]),
        ("ABC", "D", (PROMOTE, "D"), ["promote D", "remove A"]),
        ("ABCD", "", (REMOVE, "A"), ["remove A"]),
        ("BCD", "", None, []),
        ("BC", "D", (PROMOTE, "D"), ["promote D"]),
        ("BC", "A", (ADD, "D"), ["add D", "promote D", "remove A"]),
    ],
)
def test_next_step_of_a_replacement_follows_from_the_members(
    voters: str, learners: str, step: tuple[MemberAction, str] | None, left: list[str]
) -> None:
    replacement = MemberReplacement("A", "D")
    assert replacement.next_step(rows(voters, learners)) == step
    assert replacement.steps(rows(voters, learners)) == left


def with_witnesses(found: FromService[SharedReaderQueueStatus], witnesses: str) -> FromService[SharedReaderQueueStatus]:
    service, status = found
    assert status.replication is not None
    members = tuple(structs.replace(each, is_witness=each.name in witnesses) for each in status.replication.members)
    replication = structs.replace(status.replication, members=members)
    return FromService(service, structs.replace(status, replication=replication))


@pytest.mark.parametrize(
    ("voters", "learners", "step", "left"),
    [
        ("ABV", "", (MemberAction.ADD_WITNESS, "W"), ["add W as a witness", "promote W", "remove V"]),
        ("ABV", "W", (PROMOTE, "W"), ["promote W", "remove V"]),
        ("ABVW", "", (REMOVE, "V"), ["remove V"]),
        ("AB", "VW", (PROMOTE, "W"), ["promote W", "remove V"]),
        ("AB", "V", (MemberAction.ADD_WITNESS, "W"), ["add W as a witness", "promote W", "remove V"]),
        ("ABW", "", None, []),
    ],
)
def test_witness_takes_the_place_of_a_witness(
    voters: str, learners: str, step: tuple[MemberAction, str] | None, left: list[str]
) -> None:
    members = members_seen([with_witnesses(led("Q", "B", [*voters], [*learners]), "VW")])
    assert MemberReplacement("V", "W").next_step(members) == step
    assert MemberReplacement("V", "W").steps(members) == left


@pytest.mark.parametrize(("voters", "learners"), [("ABCW", ""), ("ABC", "W"), ("ABW", "C")])
def test_witness_and_member_with_samples_do_not_replace_each_other(voters: str, learners: str) -> None:
    members = members_seen([with_witnesses(led("Q", "B", [*voters], [*learners]), "W")])
    for old, new in ("WC", "CW"):
        with pytest.raises(Refused, match="W is a witness, and C, a member too, holds the samples") as caught:
            MemberReplacement(old, new).next_step(members)
        assert f"Replace {old} by" in caught.value.remedy


def test_witness_is_the_goal_of_no_move_and_completes_a_replacement() -> None:
    found = with_witnesses(led("Q1", "A", "AW"), "W")
    other = FromService(found.service, structs.replace(found.body, queue_name="Q2"))
    assert moves_to_spread([found, other]) == []
    assert MemberReplacement("V", "W").next_step(members_seen([found])) is None


def test_replacement_is_refused_without_a_master_and_between_strangers() -> None:
    with pytest.raises(Refused, match="no master now"):
        MemberReplacement("A", "D").next_step(rows("ABC", master="Z"))
    with pytest.raises(Refused, match="neither X nor Y is a member; there are A, B, C"):
        MemberReplacement("X", "Y").next_step(rows("ABC"))


@pytest.mark.parametrize(
    ("voters", "learners", "silent", "name", "left"),
    [
        ("ABC", "", "", "A", None),
        ("ABC", "", "", "B", None),
        ("ABC", "", "C", "A", 1),
        ("ABC", "", "C", "B", 1),
        ("ABC", "", "C", "C", None),
        ("ABC", "D", "C", "D", None),
        ("ABC", "D", "C", "B", 1),
    ],
)
def test_member_is_spared_where_the_voters_that_are_left_are_a_quorum(
    voters: str, learners: str, silent: str, name: str, left: int | None
) -> None:
    service, status = led("Q", "A", voters, learners)
    replication = status.replication
    assert replication is not None
    members = tuple(structs.replace(each, role="") if each.name in silent else each for each in replication.members)
    found = FromService(service, structs.replace(status, replication=structs.replace(replication, members=members)))
    not_replicated = FromService("B", STATUS)
    if left is None:
        check_spared([not_replicated, found], name)
        return
    with pytest.raises(Refused, match=f"Q: of the 3 voters only {left} would be left without {name}, and 2 are a quor"):
        check_spared([not_replicated, found], name)


def test_masters_are_spread_over_voters_that_are_level() -> None:
    on_a = [led(queue, "A", "ABC") for queue in ("Q1", "Q2", "Q3")]
    assert moves_to_spread(on_a) == [Move("Q1", "A", "B", False), Move("Q2", "A", "C", False)]
    behind = [led(queue, "A", "ABC", behind="B") for queue in ("Q1", "Q2", "Q3")]
    assert moves_to_spread(behind) == [Move("Q1", "A", "C", False)]
    assert moves_to_spread([led("Q1", "A", "A", "BC"), led("Q2", "A", "A", "BC")]) == [], "learners lead nothing"
    assert moves_to_spread([led(f"Q{number}", master, "ABC") for number, master in enumerate("ABAC")]) == []


def test_master_is_not_moved_to_a_member_of_a_lower_priority() -> None:
    def with_priorities(queue: str) -> FromService[SharedReaderQueueStatus]:
        service, status = led(queue, "A", "ABC")
        assert status.replication is not None
        members = tuple(
            structs.replace(each, master_priority={"A": 1, "B": None, "C": 1}[each.name])
            for each in status.replication.members
        )
        replication = structs.replace(status.replication, members=members)
        return FromService(service, structs.replace(status, replication=replication))

    statuses = [with_priorities(queue) for queue in ("Q1", "Q2", "Q3", "Q4")]
    assert [each.master for each in moves_to_spread(statuses)] == ["C", "C"]


def test_master_of_the_configuration_counts_and_moves() -> None:
    statuses = [led("configuration", "A", "AB"), led("P/S/Q", "A", "AB"), led("P/S/R", "B", "AB")]
    assert moves_to_spread(statuses) == []
    assert moves_to_spread([*statuses, led("P/S/T", "A", "AB")]) == [Move("configuration", "A", "B", False)]
    assert moves_to_spread(statuses[:2]) == [Move("configuration", "A", "B", False)]


def test_queues_of_one_group_are_one_move() -> None:
    statuses = [led("Q1", "A", "AB", group="Q1"), led("Dead", "A", "AB", group="Q1"), led("Q2", "A", "AB", group="Q2")]
    assert moves_to_spread(statuses) == [Move("Q1", "A", "B", False)]


@given(st.lists(st.sampled_from("ABCDE"), max_size=40))
def test_no_two_members_differ_by_more_than_one_master_afterwards(masters: list[str]) -> None:
    statuses = [led(f"Q{number}", master, "ABCDE") for number, master in enumerate(masters)]
    moves = moves_to_spread(statuses)
    counts = Counter(masters)
    assert len({each.queue_name for each in moves}) == len(moves), "no queue moves twice"
    for each in moves:
        counts.update({each.former: -1, each.master: 1})
    found = [counts[name] for name in "ABCDE"]
    assert max(found) - min(found) <= 1
    ideal = sum(max(0, count - -(-len(masters) // 5)) for count in Counter(masters).values())
    assert len(moves) >= ideal
