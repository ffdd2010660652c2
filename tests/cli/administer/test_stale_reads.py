"""Reads of a replicated queue that may be behind: what the answer states of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from msgspec import structs

from qsctl.cli._staleness import STALENESS_HELP, Staleness, read_at_members
from qsctl.client.administration import Administration, FromService
from qsctl.core.statistics.status import ReplicationStatus, SharedReaderQueueStatus
from qsctl.instant import SECOND_NS
from qsctl.resource import ResourceIdentifier
from tests.cli.shell import Shell
from tests.transport.monitoring_bodies import STATUS

SLAVE = ReplicationStatus("slave", 3, "A", 3, 2, 0, True, 2, 9, 7, "", behind_ns=SECOND_NS // 2)
CANDIDATE = structs.replace(SLAVE, role="candidate", master="", commit_index=5, behind_ns=90 * SECOND_NS)
MASTER = structs.replace(SLAVE, role="master", is_current=True, commit_index=9)
NEVER = structs.replace(SLAVE, role="learner", behind_ns=None)


class Answering:
    """Members that answer with these states, before and after the reading."""

    def __init__(self, *looks: dict[str, ReplicationStatus | None]) -> None:
        self._looks = list(looks)

    def tolerate_silence(self) -> None:
        pass

    def statuses(self, _queue: ResourceIdentifier) -> list[FromService[SharedReaderQueueStatus]]:
        look = self._looks.pop(0)
        return [FromService(name, structs.replace(STATUS, replication=each)) for name, each in look.items()]


def staleness(*looks: dict[str, ReplicationStatus | None]) -> Staleness:
    administration = cast("Administration", Answering(*looks))
    found, read = read_at_members(administration, ResourceIdentifier(), lambda: "samples", allows_stale=True)
    assert found == "samples"
    return read


def test_answer_with_that_of_the_confirmed_master_is_not_behind(capsys: pytest.CaptureFixture[str]) -> None:
    look = {"A": MASTER, "B": SLAVE}
    assert staleness(look, look) == Staleness("A", False, 0, 0.5)
    assert capsys.readouterr().err == ""


def test_answer_is_as_far_behind_as_that_of_the_member_with_the_latest_contact(
    capsys: pytest.CaptureFixture[str],
) -> None:
    look = {"C": NEVER, "B": CANDIDATE, "D": structs.replace(CANDIDATE, behind_ns=91 * SECOND_NS)}
    assert staleness(look, look) == Staleness("B", True, 4, 90.0)
    expected = "May be behind: B had contact with its master 90.0 s ago, and 4 entries of its log are undecided."
    assert expected in " ".join(capsys.readouterr().err.split())
    assert staleness({"C": NEVER}, {"C": NEVER}).sentence.startswith(
        "May be behind: C had no contact with a master yet"
    )


def test_answer_may_be_behind_where_a_member_began_to_lead_or_ceased_meanwhile() -> None:
    for looks in (({"A": SLAVE}, {"A": MASTER}), ({"A": MASTER}, {"A": SLAVE}), ({"A": MASTER}, {})):
        assert staleness(*looks).may_be_behind


def test_answer_about_a_queue_that_is_not_replicated_is_not_behind() -> None:
    assert not staleness({"A": None}, {"A": None}).may_be_behind


def test_documents_have_the_fields_where_they_were_requested(tmp_path: Path) -> None:
    qsctl = Shell(tmp_path / "state")
    assert qsctl("create-queue", "Orders").status == 0
    assert qsctl("produce", "Orders", "--text", "one").status == 0
    for command in (("get", "messages", "Orders"), ("peek", "Orders")):
        (row,) = qsctl(*command, "-o", "json").document
        assert {row[name] for name in STALENESS_HELP} == {None}
        (row,) = qsctl(*command, "--allow-stale", "-o", "json").document
        assert {name: row[name] for name in STALENESS_HELP} == {
            "may_be_behind": False, "behind_count": 0, "behind_seconds": 0.0,
        }  # fmt: skip
    written = qsctl("export", "Orders", str(tmp_path / "orders.jsonl"), "--allow-stale", "-o", "json").document
    assert written["may_be_behind"] is False
    assert json.loads((tmp_path / "orders.jsonl").read_text())["payload"] == "one"
