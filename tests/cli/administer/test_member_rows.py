"""The rows of members, as they follow from what several services report."""

from __future__ import annotations

from msgspec import structs

from qsctl.cli.administer._member_results import Members, members_seen
from qsctl.cli.administer.replication_results import Replications
from qsctl.cli.output.results import TableBlock
from qsctl.cli.top.look import Rates, queues_seen
from qsctl.client.administration import FromService
from qsctl.core.statistics.status import MemberStatus, ReplicationStatus, SharedReaderQueueStatus
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from tests.transport.monitoring_bodies import STATUS

LEVEL = MemberStatus("A", True, "master", 9, 9, 0, 0, 0, 0, 6, "ok", 10)
BEHIND = MemberStatus("B", True, "slave", 5, 4, 4, 700, 3 * SECOND_NS // 2, 40 * MILLISECOND_NS, 6, "hangs", 0, True)
DEAD = MemberStatus("C", True)
LEARNER = MemberStatus("D", False, "learner", 9, None, 0, 0, 0, 0, 5)
OF_MASTER = ReplicationStatus("master", 3, "A", 3, 2, 2, True, 9, 9, 9, "elected", (LEVEL, BEHIND, DEAD, LEARNER))
OF_SLAVE = ReplicationStatus(
    "slave", 3, "A", 3, 2, 0, True, 0, 5, 5, "A is the master of epoch 3",
    (
        MemberStatus("A", True, "master", silent_ns=0),
        structs.replace(BEHIND, lag_count=None),
        DEAD,
        MemberStatus("D", False),
    ),
)  # fmt: skip


def from_services(**replications: ReplicationStatus) -> list[FromService[SharedReaderQueueStatus]]:
    return [FromService(name, structs.replace(STATUS, replication=each)) for name, each in replications.items()]


def table_of(block: object) -> list[list[object]]:
    assert isinstance(block, TableBlock)
    return [[row[column.field] for column in block.columns] for row in block.rows]


def test_members_are_shown_as_the_master_knows_them() -> None:
    members = members_seen(from_services(B=OF_SLAVE, A=OF_MASTER))
    assert {each.service for each in members} == {"A"}
    (block,) = Members(members).blocks()
    assert table_of(block) == [
        ["A", "voter", "master", 9, 9, 0, 0, "0.0", "0.0", 6, "ok", 10],
        ["B", "witness", "slave", 5, 4, 4, 700, "1.5", "0.0", 6, "hangs", 0],
        ["C", "voter", "?", "?", "?", "?", "?", "?", "?", "?", "?", "?"],
        ["D", "learner", "learner", 9, "?", 0, 0, "0.0", "0.0", 5, "?", "?"],
    ]
    unknown = ("role", "durable_index", "applied_index", "lag_count", "lag_bytes", "lag_seconds", "silent_seconds")
    (dead,) = [row for row in Members(members).rows() if row["member"] == "C"]
    assert [dead[name] for name in (*unknown, "version", "disk")] == [None] * 9


def test_without_a_master_each_member_is_shown_as_it_answers_itself() -> None:
    deposed = structs.replace(OF_MASTER, has_quorum=False, members=(structs.replace(LEVEL, disk="hangs"), BEHIND, DEAD))
    members = {each.member: each for each in members_seen(from_services(A=deposed, B=OF_SLAVE))}
    assert {name: each.service for name, each in members.items() if name in "AB"} == {"A": "A", "B": "B"}
    assert (members["A"].disk, members["B"].lag_count, members["C"].role) == ("hangs", None, None)


def test_master_of_the_latest_epoch_counts() -> None:
    former = structs.replace(OF_MASTER, epoch=2, members=(structs.replace(DEAD, name="A"),))
    for order in ({"Z": former, "A": OF_MASTER}, {"A": OF_MASTER, "Z": former}):
        assert {each.service for each in members_seen(from_services(**order))} == {"A"}


def test_only_voters_are_counted_as_up_to_date_and_learners_beside_them() -> None:
    replicas, members = Replications(tuple(from_services(A=OF_MASTER))).blocks()
    assert isinstance(replicas, TableBlock)
    assert [row["up_to_date"] for row in replicas.rows] == ["2 of 3 voters, 1 learner"]
    assert len(table_of(members)) == 4
    (row,) = queues_seen(from_services(A=OF_MASTER), Rates().of(from_services(A=OF_MASTER), 0)).rows
    assert (row["role"], row["up_to_date"], row["lag"]) == ("master", "2/3+1", 9)


def test_document_has_the_members_that_each_service_reports() -> None:
    document = Replications(tuple(from_services(A=OF_MASTER, B=OF_SLAVE)), silent=("C",)).document()
    assert isinstance(document, list)
    found = {row["service"]: [each["member"] for each in row["members"]] for row in document}
    assert found == {"A": [*"ABCD"], "B": [*"ABCD"], "C": []}
    rows = {row["service"]: row for row in Replications(tuple(from_services(A=OF_MASTER))).rows()}
    assert "members" not in rows["A"]
    assert rows["A"]["learner_count"] == 1


def test_service_of_an_earlier_version_reports_no_members() -> None:
    earlier = structs.replace(OF_MASTER, members=())
    assert members_seen(from_services(A=earlier)) == []
    assert len(Replications(tuple(from_services(A=earlier))).blocks()) == 1
