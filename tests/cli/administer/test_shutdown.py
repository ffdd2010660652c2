"""`qsctl shutdown` and `qsctl member drain` at services that SHUTDOWN does not stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qsctl.core.admin.command import Command, Drain, Shutdown
from qsctl.core.admin.handle import LongAnswer, handle
from qsctl.core.hosted_service import HostedService
from qsctl.core.messages import CommandReply
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import ExitStatus
from qsctl.identity import NIL_IDENTITY, counted_incarnations
from tests.cli.shell import Shell


class Services:
    """A connection to services; it keeps the commands that it was asked to send."""

    def __init__(self, *hosts: HostedService) -> None:
        self._hosts = hosts
        self.asked: list[Command] = []

    def request(self, command: Command, target: str = "*") -> Sequence[CommandReply]:
        self.asked.append(command)
        replies: list[CommandReply] = []
        for host in self._hosts:
            if target in ("*", host.application_name):
                answer = handle(host, 1, command)
                assert not isinstance(answer, LongAnswer)
                replies += [CommandReply(NIL_IDENTITY, host.application_name, each) for each in answer]
        return replies

    @property
    def changing(self) -> list[Command]:
        """The commands that stop or drain a service."""
        return [each for each in self.asked if isinstance(each, Shutdown | Drain)]


def host(name: str, *, is_daemon: bool) -> HostedService:
    settings = ServiceSettings(name, (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S"),)),))
    return HostedService(
        settings, 0, draw=counted_incarnations(), journals_everything=False, stops_on_command=not is_daemon
    )


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    """A service in the foreground and one that runs as a daemon."""
    connection = Services(host("A", is_daemon=False), host("B", is_daemon=True))

    @contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[Services]:
        yield connection

    monkeypatch.setattr("qsctl.cli.service_options.open_connection", opened)
    return connection


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--drain",), ("--drain", "--dry-run")])
@pytest.mark.parametrize("target", ["B", "*"])
def test_daemon_is_neither_drained_nor_stopped_by_shutdown(
    services: Services, tmp_path: Path, options: tuple[str, ...], target: str
) -> None:
    done = Shell(tmp_path)("shutdown", "--target", target, *options)
    assert (done.status, done.out, services.changing) == (ExitStatus.REFUSED, "", [])
    assert "B: SHUTDOWN does not stop a service that runs as a daemon" in done.err
    assert "SIGTERM. `qsctl member drain`" in done.err


def test_service_in_the_foreground_is_drained_and_stopped(services: Services, tmp_path: Path) -> None:
    assert Shell(tmp_path)("shutdown", "--target", "A", "--drain").status == 0
    assert services.changing == [Drain(), Shutdown()]


def test_daemon_is_drained_without_being_stopped(services: Services, tmp_path: Path) -> None:
    qsctl = Shell(tmp_path)
    assert (
        "DRY_RUN: service B is in no cluster, and master of nothing" in qsctl("member", "drain", "B", "--dry-run").out
    )
    assert services.changing == [Drain(is_trial=True)]
    assert "OK: service B is in no cluster, and master of nothing" in qsctl("member", "drain", "B").out
    assert services.changing == [Drain(is_trial=True), Drain()]


def test_several_services_are_not_drained_at_once(services: Services, tmp_path: Path) -> None:
    done = Shell(tmp_path)("member", "drain", "*")
    assert (done.status, services.changing) == (ExitStatus.USAGE, [])
    assert "one service can be drained, and A, B answer" in done.err
