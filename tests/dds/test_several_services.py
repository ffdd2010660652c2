"""Commands that a pattern brings to several services: whose answer is whose [QS 5.2 and 7.4]."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from qsctl.client.administration import Administration
from qsctl.errors import ExitStatus, NoAnswer
from qsctl.resource import parse_resource
from tests.commands import command_line
from tests.dds.service_process import ServiceProcess, StartService
from tests.documents import page
from tests.patience import PATIENCE_S

S = "/domain_participant/P/shared_subscriber/S"
ORDERS = f"{S}/shared_reader_queue/Orders"


class Shell:
    """Commands to the services of a domain."""

    def __init__(self, domain: int) -> None:
        self._service = f"dds:{domain}"
        self._app = command_line()

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(self._app, [*arguments, "--service", self._service])

    def document(self, *arguments: str) -> Any:
        done = self(*arguments, "-o", "json")
        assert done.exit_code == ExitStatus.DONE, done.stderr + done.stdout
        return json.loads(done.stdout)


@pytest.fixture
def north_1(start_service: StartService) -> ServiceProcess:
    return start_service(name="North1")


@pytest.fixture
def north_2(start_service: StartService) -> ServiceProcess:
    return start_service(name="North2")


@pytest.fixture
def qsctl(domain: int, north_1: ServiceProcess, north_2: ServiceProcess) -> Shell:
    return Shell(domain)


def test_results_name_their_service(qsctl: Shell) -> None:
    assert [(each["service"], each["queue_name"]) for each in qsctl.document("get", "status")] == [
        ("North1", "P/S/Orders"),
        ("North2", "P/S/Orders"),
    ]
    data = qsctl.document("get", "data")
    assert [each["service"] for each in data["queues"]] == ["North1", "North2"]
    assert (data["services"], data["subscribers"]) == (["North1", "North2"], [S])
    for arguments in (("get", "status"), ("get", "status", "Orders"), ("get", "data"), ("get", "data", "Orders")):
        shown = qsctl(*arguments).stdout
        assert "North1" in shown
        assert "North2" in shown
        alone = qsctl(*arguments, "--target", "*2").stdout
        assert "North1" not in alone
    replies = qsctl.document("send", "GET", "North*", f"{ORDERS}/status")
    assert [(each["service"], each["intermediate"]) for each in replies] == [("North1", False), ("North2", False)]
    assert "North2: OK" in qsctl("send", "GET", "North*", "/data").stdout


def test_a_queue_that_several_have_is_meant_once(qsctl: Shell) -> None:
    produced = qsctl.document("produce", "Orders", "--text", "a", "--text", "b", "--count", "1000")
    assert [(each["queue_name"], each["accepted"]) for each in produced["queues"]] == [("P/S/Orders", 2000)]
    qsctl(
        "flush-queue",
        "Orders",
        "--select",
        "NOT (@original_sample_identity.sequence_number = (0,1) OR @original_sample_identity.sequence_number = (0,2))",
    )
    held = qsctl.document("get", "messages", "Orders")
    assert [(each["service"], each["payload"]) for each in held] == [
        ("North1", "a"),
        ("North1", "b"),
        ("North2", "a"),
        ("North2", "b"),
    ]
    assert "North2" in qsctl("get", "messages", "S/Orders").stdout
    flushed = qsctl.document("flush-queue", "Orders")
    assert flushed["message"] == "2 samples removed from queue P/S/Orders"
    assert [each["service"] for each in flushed["services"]] == ["North1", "North2"]
    nothing = qsctl("get", "messages", "Oders")
    assert nothing.exit_code == ExitStatus.NOT_FOUND
    assert nothing.stderr.endswith("Did you mean P/S/Orders?\n")


def test_each_service_answers_a_change_and_a_failure_is_shown_beside_the_others(qsctl: Shell) -> None:
    only_one = qsctl("create-queue", "New", "--type", "DDS::Octets", "--target", "North1")
    assert only_one.stdout == "OK: queue P/S/New is created\n", only_one.stderr
    assert [each["service"] for each in qsctl.document("get", "data", "New")["queues"]] == ["North1"]
    both = qsctl("create-queue", "New", "--type", "DDS::Octets")
    assert (both.exit_code, both.stdout) == (ExitStatus.DUPLICATED, "")
    assert both.stderr == (
        "Error: North1: DUPLICATED: queue P/S/New exists already, with the same configuration\n"
        "North2: OK: queue P/S/New is created\n"
        "With --idempotent this counts as done.\n"
    )
    assert only_one.stdout in page("service"), "this is its example"
    assert both.stderr in page("service")
    again = qsctl("create-queue", "New", "--type", "DDS::Octets", "--idempotent")
    assert [line.split(":")[:2] for line in again.stdout.splitlines()] == [
        ["North1", " DUPLICATED"],
        ["North2", " DUPLICATED"],
    ]
    assert qsctl("delete-queue", "New", "--target", "North2").exit_code == ExitStatus.DONE
    gone = qsctl("delete-queue", "New")
    assert gone.exit_code == ExitStatus.NOT_FOUND
    assert "North1: OK: queue P/S/New is deleted\nNorth2: ERROR:" in gone.stderr
    assert qsctl("delete-queue", "New", "--idempotent").exit_code == ExitStatus.DONE


def test_a_pattern_means_all_services_of_the_same_name(start_service: StartService, domain: int) -> None:
    for name in ("One", "Other"):
        start_service("--app-name", "Twin", name=name)
    qsctl = Shell(domain)
    assert [each["service"] for each in qsctl.document("get", "status")] == ["Twin", "Twin"]


def test_a_silent_service_is_reported_with_the_others_answers(north_1: ServiceProcess, north_2: ServiceProcess) -> None:
    connection = north_1.connection(timeout_s=5)
    administration = Administration(connection)
    assert [each.service for each in administration.service_data()] == ["North1", "North2"]
    os.kill(north_2.pid, signal.SIGSTOP)
    try:
        with pytest.raises(NoAnswer, match=r"did not answer within 5 s: North2; others did: North1 OK$"):
            administration.flush_queue(parse_resource(ORDERS))
    finally:
        os.kill(north_2.pid, signal.SIGCONT)
    connection.close()


def test_a_shutdown_reaches_all(qsctl: Shell, north_1: ServiceProcess, north_2: ServiceProcess) -> None:
    assert qsctl("shutdown").stdout == (
        "North1: OK: service North1 is shutting down\nNorth2: OK: service North2 is shutting down\n"
    )
    for service in (north_1, north_2):
        assert service.process is not None
        assert service.process.wait(PATIENCE_S) == 0
