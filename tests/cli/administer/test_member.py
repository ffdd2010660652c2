"""`qsctl member` where nothing is replicated: what is refused, with which exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.cli.shell import Shell


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "state")
    assert shell("create-queue", "Orders").status == 0
    return shell


@pytest.mark.parametrize("action", ["add", "promote", "remove"])
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_members_of_what_is_not_replicated_are_not_changed(qsctl: Shell, action: str, options: tuple[str, ...]) -> None:
    done = qsctl("member", action, "Orders_D", "Orders", *options)
    assert (done.status, done.out) == (ExitStatus.REFUSED, "")
    assert "Orders has no replicas here" in done.err
    done = qsctl("member", action, "Orders_D", "--configuration", *options)
    assert done.status == ExitStatus.REFUSED
    assert "the configuration has no replicas here" in done.err


def test_witness_of_what_is_not_replicated_is_not_added(qsctl: Shell) -> None:
    for named in ("Orders", "--configuration"):
        done = qsctl("member", "add", "Orders_W", named, "--witness", "--dry-run")
        assert (done.status, done.out) == (ExitStatus.REFUSED, "")
        assert "has no replicas here" in done.err
    done = qsctl("member", "add", "Orders_W", "--witness")
    assert done.status == ExitStatus.USAGE
    assert "qsctl member add Orders_W Orders" in done.err


def test_queue_whose_members_change_must_exist(qsctl: Shell) -> None:
    assert qsctl("member", "add", "Orders_D", "Other").status == ExitStatus.NOT_FOUND


@pytest.mark.parametrize("named", [(), ("Orders", "--configuration")])
def test_queue_or_the_configuration_is_named(qsctl: Shell, named: tuple[str, ...]) -> None:
    done = qsctl("member", "add", "Orders_D", *named)
    assert done.status == ExitStatus.USAGE
    assert "qsctl member add Orders_D Orders" in done.err


def test_members_of_a_queue_that_is_not_replicated_are_not_listed(qsctl: Shell) -> None:
    done = qsctl("member", "list", "Orders")
    assert (done.status, done.out) == (ExitStatus.REFUSED, "")
    assert "no service reports members of Orders" in done.err
    assert qsctl("member", "list", "Other").status == ExitStatus.NOT_FOUND


@pytest.mark.parametrize("words", [("list",), ("replace", "A", "B"), ("replace", "A", "B", "--dry-run")])
def test_members_of_a_configuration_that_is_not_replicated_are_not_known(qsctl: Shell, words: tuple[str, ...]) -> None:
    done = qsctl("member", *words, "--configuration")
    assert (done.status, done.out) == (ExitStatus.REFUSED, "")
    assert "the configuration has no replicas here" in done.err
    for named in ((), ("Orders", "--configuration")):
        done = qsctl("member", *words, *named)
        assert done.status == ExitStatus.USAGE
        assert "or give --configuration" in done.err


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--to", "Orders_B")])
def test_master_of_what_is_not_replicated_does_not_step_down(qsctl: Shell, options: tuple[str, ...]) -> None:
    done = qsctl("member", "step-down", "Orders", *options)
    assert (done.status, done.out) == (ExitStatus.REFUSED, "")
    assert "Orders has no replicas here" in done.err
    assert qsctl("member", "step-down", *options).status == ExitStatus.USAGE


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_member_of_what_is_not_replicated_is_not_replaced(qsctl: Shell, options: tuple[str, ...]) -> None:
    done = qsctl("member", "replace", "A", "B", "Orders", *options)
    assert (done.status, done.out) == (ExitStatus.REFUSED, "")
    assert "the replication group has no master now" in done.err
    assert qsctl("member", "replace", "A", "B", "Orders", "--wait", "soon").status == ExitStatus.USAGE


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_without_replicated_queues_there_is_nothing_to_spread(qsctl: Shell, options: tuple[str, ...]) -> None:
    done = qsctl("member", "rebalance", *options)
    assert (done.status, done.out) == (0, "The masters are spread evenly: there is nothing to move.\n")


def test_service_that_is_in_no_cluster_is_drained_at_once(qsctl: Shell) -> None:
    done = qsctl("shutdown", "--drain", "--dry-run")
    assert done.status == 0
    assert "is in no cluster, and master of nothing" in done.out
    assert qsctl("shutdown", "--drain").status == 0
