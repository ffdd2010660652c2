"""Signals and supervisors of a running service: SIGHUP, rotated logs, `sd_notify`, ends that are not foreseen."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qsctl.errors import Damaged
from qsctl.service.process.background import systemd_unit
from qsctl.service.process.logger import LogFile, ServiceLog, Verbosity
from qsctl.service.process.supervisor import Supervisor
from tests.patience import PATIENCE_S, eventually
from tests.processes import running

CONFIGURATION = """
<dds><queuing_service name="A">
  <domain_participant name="P"><domain_id>{domain}</domain_id>
    <shared_subscriber name="S"><session_settings><session name="s"/></session_settings>
      <shared_reader_queue name="Q" session="s"><topic_name>T</topic_name><type_name>DDS::Octets</type_name>
      </shared_reader_queue></shared_subscriber>
  </domain_participant></queuing_service></dds>
"""


@pytest.fixture
def started(tmp_path: Path) -> Any:
    """A command that starts a service in the foreground."""

    def command(*arguments: str, domain: int) -> list[str]:
        text = CONFIGURATION.format(domain=domain)
        (tmp_path / "a.xml").write_text(text, encoding="utf-8")
        return [sys.executable, "-m", "qsctl", "serve", "a.xml", *arguments]

    return command


def is_up(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    assert "is up" in process.stderr.readline()


def test_sighup_opens_a_rotated_log_again_and_the_service_goes_on(tmp_path: Path, started: Any) -> None:
    log, pid = tmp_path / "s.log", tmp_path / "s.pid"
    command = started("--log-file", "s.log", "--pid-file", "s.pid", "--verbosity", "3", domain=161)
    with running(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as service:
        is_up(service)
        log.rename(tmp_path / "s.log.1")
        service.send_signal(signal.SIGHUP)
        eventually(lambda: log.exists() and "log_reopened" in log.read_text())
        assert pid.exists()
        assert service.poll() is None
        service.terminate()
        assert service.wait(PATIENCE_S) == 0
        assert "cause='SIGTERM'" in log.read_text()
        assert "leaving" not in (tmp_path / "s.log.1").read_text()
    assert not pid.exists()


def test_sighup_rereads_the_limits_and_reports_what_is_not_in_force(tmp_path: Path, started: Any) -> None:
    file, log = tmp_path / "a.xml", tmp_path / "s.log"
    command = started("--log-file", "s.log", "--verbosity", "3", domain=161)
    text = file.read_text()
    limited = text.replace(
        "</queuing_service>", "<service_limits><max_queues>1</max_queues></service_limits></queuing_service>"
    )
    with running(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as service:
        is_up(service)

        def reread(configuration: str, line: str) -> None:
            before = log.read_text().count(line)
            file.write_text(configuration)
            service.send_signal(signal.SIGHUP)
            assert eventually(lambda: log.read_text().count(line) > before), log.read_text()

        reread(limited, "limits='max_queues=1'")
        assert "not_in_force" not in log.read_text()
        reread(limited, "limits='unchanged'")
        reread(limited.replace('name="Q"', 'name="R"'), "queue P/S/R is not here; queue P/S/Q is here and not in it")
        reread("<dds>", "event='configuration_not_reread'")
        assert service.poll() is None
        service.terminate()
        assert service.wait(PATIENCE_S) == 0


def test_sighup_while_the_files_are_moved_changes_nothing(tmp_path: Path, started: Any) -> None:
    file, away, log = tmp_path / "a.xml", tmp_path / "away.xml", tmp_path / "s.log"
    command = started("--log-file", "s.log", "--verbosity", "3", domain=161)
    limited = file.read_text().replace(
        "</queuing_service>", "<service_limits><max_queues>3</max_queues></service_limits></queuing_service>"
    )
    file.write_text(limited)
    with running(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as service:
        is_up(service)
        file.rename(away)
        log.rename(tmp_path / "s.log.1")
        service.send_signal(signal.SIGHUP)
        assert eventually(lambda: log.exists() and "event='configuration_not_reread'" in log.read_text())
        file.mkdir()  # in its place is something else
        service.send_signal(signal.SIGHUP)
        assert eventually(lambda: log.read_text().count("event='configuration_not_reread'") == 2), log.read_text()
        file.rmdir()
        away.rename(file)
        service.send_signal(signal.SIGHUP)
        assert eventually(lambda: "limits='unchanged'" in log.read_text()), log.read_text()
        service.terminate()
        assert service.wait(PATIENCE_S) == 0


@pytest.mark.slow
def test_sighup_rereads_the_limits_of_every_process_of_sessions(tmp_path: Path, started: Any) -> None:
    file, log = tmp_path / "a.xml", tmp_path / "s.log"
    command = started("--log-file", "s.log", "--verbosity", "3", "--metrics-port", "0", domain=161)
    text = file.read_text()
    assert text.count('<session name="s"/>') == 1
    text = text.replace('<session name="s"/>', '<session name="s"/><session name="t"/>')

    def with_limits(octets: int) -> str:
        limits = f"<service_limits><max_memory_bytes>{octets}</max_memory_bytes></service_limits></queuing_service>"
        return text.replace("</queuing_service>", limits)

    file.write_text(with_limits(10**12))
    with running(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as service:
        is_up(service)
        file.write_text(with_limits(1_000_000))
        service.send_signal(signal.SIGHUP)
        assert eventually(lambda: "max_memory_bytes=1000000" in log.read_text()), log.read_text()
        sessions = ("P/S/s", "P/S/t")
        high = [f"session={name!r}" for name in sessions]

        def is_followed() -> bool:
            lines = [line for line in log.read_text().splitlines() if "event='memory_high'" in line]
            return all(any(name in line for line in lines) for name in high)

        assert eventually(is_followed), log.read_text()
        file.write_text(with_limits(10**12))
        service.send_signal(signal.SIGHUP)
        assert eventually(lambda: log.read_text().count("event='memory_sufficient'") == 2), log.read_text()
        service.terminate()
        assert service.wait(PATIENCE_S) == 0


def test_sighup_ends_a_service_in_order_whose_terminal_is_all_it_has(tmp_path: Path, started: Any) -> None:
    command = started("--pid-file", "s.pid", domain=161)
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        is_up(service)
        service.send_signal(signal.SIGHUP)
        stdout, _ = service.communicate(timeout=PATIENCE_S)
        assert (service.returncode, stdout) == (0, "service A left: SIGHUP\n")
    assert not (tmp_path / "s.pid").exists()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE_S)
        yield listening


@pytest.mark.slow
def test_a_supervisor_learns_that_the_service_is_ready_turns_and_leaves(
    tmp_path: Path, started: Any, supervisor: socket.socket
) -> None:
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
    with running(started(domain=161), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as service:
        heard = [supervisor.recv(100).decode() for _ in range(4)]
        assert sorted(heard) == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]
        service.send_signal(signal.SIGHUP)  # a supervisor keeps the lines: nothing ends
        service.terminate()
        while (word := supervisor.recv(100).decode()) == "WATCHDOG=1":
            pass
        assert word == "STOPPING=1"
        assert service.wait(PATIENCE_S) == 0


def test_a_supervisor_that_is_gone_holds_nothing_up(tmp_path: Path) -> None:
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "nobody"), "WATCHDOG_USEC": "1"}).ready()
    Supervisor({"NOTIFY_SOCKET": "@qsctl-nobody", "WATCHDOG_USEC": "odd"}).beat()


def test_another_process_s_watchdog_is_not_answered(tmp_path: Path, supervisor: socket.socket) -> None:
    of_another = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}
    Supervisor(of_another).beat()
    Supervisor(of_another).ready()
    assert supervisor.recv(100) == b"READY=1"


@pytest.mark.parametrize("error", [AssertionError("an invariant"), Damaged("the disk refuses", remedy="Make room.")])
def test_what_ends_a_service_is_a_line_of_its_log(tmp_path: Path, error: Exception) -> None:
    stream = LogFile(tmp_path / "s.log")
    log = ServiceLog("A", Verbosity.EXCEPTIONS, stream=stream)
    with pytest.raises(type(error)), log.endings():
        raise error
    (line,) = (tmp_path / "s.log").read_text().splitlines()
    assert str(error) in line
    assert ("Traceback" in line) == isinstance(error, AssertionError)
    stream.close()


def test_a_log_goes_on_where_its_path_cannot_be_opened_again(tmp_path: Path) -> None:
    stream = LogFile(tmp_path / "s.log")
    (tmp_path / "s.log").rename(tmp_path / "kept")
    (tmp_path / "s.log").mkdir()
    stream.write("a line\n")
    assert (tmp_path / "kept").read_text() == "a line\n"
    (tmp_path / "s.log").rmdir()
    stream.write("another\n")
    assert (tmp_path / "s.log").read_text() == "another\n"
    stream.close()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_is_valid_and_exposes_little(tmp_path: Path) -> None:
    unit = tmp_path / "queuing.service"
    unit.write_text(systemd_unit(["serve", "a.xml", "--print-unit", "--metrics-port", "9100"]))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    found = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=30", unit], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout[-300:]
