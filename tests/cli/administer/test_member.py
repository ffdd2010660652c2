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
