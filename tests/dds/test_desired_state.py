"""A running service made equal to a file over DDS, also where its sessions are processes; and over a restart."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.errors import ExitStatus
from tests.cli.administer.killed_apply import KILLED
from tests.cli.shell import Outcome
from tests.commands import command_line
from tests.dds.service_process import CONFIGURATION, StartService
from tests.processes import run

PERSISTENT = "<service_qos><persistence><kind>PERSISTENT</kind></persistence></service_qos>"
TWO_SESSIONS = '<session name="s"/><session name="t"/>'
QUEUE = """
<{kind} name="{name}" session="{session}"{letters}><topic_name>{name}</topic_name>{type}
<queue_qos><resource_limits><queue_allocation_settings><max_count>{max_count}</max_count></queue_allocation_settings>
</resource_limits></queue_qos></{kind}>
"""


def queue(name: str, *, max_count: int = 10, session: str = "s", letters: str = "") -> str:
    given = f' dead_letter_queue="{letters}"' if letters else ""
    type_name = "<type_name>DDS::String</type_name>"
    kind = "shared_reader_queue"
    return QUEUE.format(kind=kind, name=name, session=session, letters=given, type=type_name, max_count=max_count)


def dead(name: str, session: str = "s") -> str:
    kind = "dead_letter_shared_reader_queue"
    return QUEUE.format(kind=kind, name=name, session=session, letters="", type="", max_count=-1)


def write(path: Path, domain: int, *queues: str, sessions: str = '<session name="s"/>') -> str:
    parts = {"name": "Test", "administration": "", "service": PERSISTENT, "subscriber": "S", "types": ""}
    path.write_text(CONFIGURATION.format(domain=domain, queues="".join(queues), sessions=sessions, **parts))
    return str(path)


def qsctl(domain: int, *arguments: str) -> Outcome:
    done = CliRunner().invoke(command_line(), [*arguments, "--service", f"dds:{domain}"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Outcome(done.exit_code, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("sessions", ['<session name="s"/>', TWO_SESSIONS], ids=["one process", "two processes"])
def test_running_service_becomes_what_the_file_has(
    start_service: StartService, domain: int, tmp_path: Path, sessions: str
) -> None:
    other = "t" if "t" in sessions.split('"') else "s"
    first = write(tmp_path / "first.xml", domain, queue("Orders"), queue("Gone", session=other), sessions=sessions)
    service = start_service(
        service=PERSISTENT, sessions=sessions, queues=queue("Orders") + queue("Gone", session=other)
    )
    assert qsctl(domain, "plan", first).status == ExitStatus.DONE, qsctl(domain, "plan", first).out
    wanted = [queue("Orders", max_count=2), dead("Dead", other), queue("Bills", session=other, letters="Dead")]
    second = write(tmp_path / "second.xml", domain, *wanted, sessions=sessions)
    assert qsctl(domain, "plan", second, "--prune").status == ExitStatus.NO
    applied = qsctl(domain, "apply", second, "--prune")
    assert (applied.status, applied.out.splitlines()[-1]) == (
        ExitStatus.DONE,
        f"4 steps done: service Test is as {second} has it.",
    ), applied
    assert qsctl(domain, "apply", second, "--prune").out.startswith("Nothing to do")
    full = qsctl(domain, "produce", "Orders", "--text", "x", "--count", "3", "--timeout", "2s")
    assert (full.status, "2 of 3 accepted, 1 refused" in full.out) == (ExitStatus.PARTLY_DONE, True), full
    live = tmp_path / "live.xml"
    live.write_text(qsctl(domain, "get", "config", "-o", "xml").out)
    differs = CliRunner().invoke(command_line(), ["diff", second, str(live)])
    assert differs.exit_code == ExitStatus.DONE, differs.stdout
    service.stop()
    service.start()
    assert qsctl(domain, "plan", second, "--prune").status == ExitStatus.DONE, "changes outlive a restart"
    lone = write(tmp_path / "lone.xml", domain, queue("Bills", session=other), sessions=sessions)
    refused = qsctl(domain, "apply", lone, "--prune")
    assert refused.status == ExitStatus.REFUSED


@pytest.mark.skipif("QSCTL_TEST_EVERY_STEP" not in os.environ, reason="QSCTL_TEST_EVERY_STEP: kills at each step")
@pytest.mark.parametrize("step", range(1, 5))
@pytest.mark.parametrize("moment", ["before", "after"])
def test_apply_that_is_killed_is_run_again_and_ends_the_same(
    start_service: StartService, domain: int, tmp_path: Path, moment: str, step: int
) -> None:
    start_service(service=PERSISTENT, queues=queue("Orders") + queue("Gone"))
    wanted = [queue("Orders", max_count=2), dead("Dead"), queue("Bills", letters="Dead")]
    second = write(tmp_path / "second.xml", domain, *wanted)
    arguments = ["apply", second, "--prune", "--service", f"dds:{domain}"]
    killed = run([sys.executable, "-c", KILLED, str(step), moment, *arguments])
    assert killed.returncode == -signal.SIGKILL
    left = len(qsctl(domain, "plan", second, "--prune", "-o", "json").document["differences"])
    assert left == 4 - (step - 1 if moment == "before" else step)
    assert qsctl(domain, "apply", second, "--prune").status == ExitStatus.DONE
    assert qsctl(domain, "plan", second, "--prune").status == ExitStatus.DONE
