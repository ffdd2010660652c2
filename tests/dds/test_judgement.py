"""What a running service says of itself and refuses: up and where, another of its name, replication, stored state."""

from __future__ import annotations

import sys
from pathlib import Path

from typer.testing import CliRunner

from qsctl.errors import ExitStatus
from tests.commands import command_line
from tests.dds.service_process import ORDERS, StartService, eventually
from tests.processes import run

REPLICATED = """<shared_reader_queue name="Bills" session="s"><topic_name>Bills</topic_name>
<type_name>DDS::Octets</type_name><queue_qos><replication><enabled>true</enabled></replication></queue_qos>
</shared_reader_queue>"""
WORDS = "queue Bills is to be replicated [QS 7], and this service is not a member of a cluster"


def test_a_service_logs_its_start_with_domain_and_name(start_service: StartService, domain: int) -> None:
    service = start_service("--app-name", "Orders_1")
    where = f"is up: 1 queue in domain {domain}, administration in domain {domain}, interface lo"
    assert eventually(lambda: f"service Orders_1 {where}" in service.log.read_text())


def test_a_replicated_queue_is_refused_by_a_service_that_lives_alone_running_or_embedded(
    start_service: StartService, domain: int, tmp_path: Path
) -> None:
    start_service()
    for where in (("--service", f"dds:{domain}"), ("--state-dir", str(tmp_path / "state"))):
        body = REPLICATED if "dds" in where[1] else REPLICATED.replace('session="s"', 'session="Session"')
        done = CliRunner().invoke(command_line(), ["create-queue", "--xml", body, *where])
        assert done.exit_code == ExitStatus.REFUSED, done.output
        assert f"UNSUPPORTED: {WORDS}" in done.stderr
        listed = CliRunner().invoke(command_line(), ["get", "data", "-o", "json", *where])
        assert "Bills" not in listed.stdout


def test_two_services_of_one_name_are_warned_of(start_service: StartService) -> None:
    first = start_service()
    assert "another_service_of_this_name" not in first.log.read_text()
    second = start_service()
    assert eventually(lambda: first.log.read_text().count("another_service_of_this_name") == 2, 30.0)
    assert second.stop() == 0


def test_sessions_of_one_service_are_not_taken_for_another(start_service: StartService) -> None:
    second = '</shared_subscriber><shared_subscriber name="S2"><session_settings><session name="s"/></session_settings>'
    service = start_service(queues=ORDERS + second + ORDERS)
    assert "processes=" in service.log.read_text()
    other = start_service(name="Other")
    assert not eventually(lambda: "another_service" in service.log.read_text() + other.log.read_text(), 3.0)


def test_a_stored_configuration_in_force_is_logged_at_start(start_service: StartService, tmp_path: Path) -> None:
    persistent = "<service_qos><persistence><kind>PERSISTENT</kind></persistence></service_qos>"
    service = start_service(service=persistent)
    assert service.stop() == 0
    service.file.write_text(service.file.read_text().replace("Orders", "Letters"))
    service.start()
    said = "the stored configuration is in force, not Test as it was read: queue P/S/Letters is not here"
    assert eventually(lambda: f"Warning: {said}" in service.log.read_text())


def test_files_that_serve_cannot_write_are_errors_of_one_line(tmp_path: Path, domain: int) -> None:
    file = tmp_path / "a.xml"
    file.write_text(
        f'<dds><queuing_service name="A"><domain_participant name="P"><domain_id>{domain}</domain_id>'
        '<shared_subscriber name="S"><session_settings><session name="s"/></session_settings></shared_subscriber>'
        "</domain_participant></queuing_service></dds>"
    )
    for option, words in (("--log-file", "the log file"), ("--pid-file", "the file of the process id")):
        done = run(
            [sys.executable, "-m", "qsctl", "serve", str(file), option, str(tmp_path / "no" / "where")], cwd=tmp_path
        )
        assert (done.returncode, words in done.stderr) == (1, True), done.stderr
