"""The five programs of the page `programs` run as they stand there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import qsctl
from qsctl.shipped import shipped
from tests.dds.service_process import ServiceProcess
from tests.documents import page, programs
from tests.patience import PATIENCE_S

TASKS, BATCHES, REQUESTS, TEST, VARIANTS = programs(page("programs"))
WITHOUT_PROCESSING, WITHOUT_PLUG_IN = programs(
    Path(__file__).with_name("former_programs.md").read_text(encoding="utf-8")
)
PROGRAMS = {"tasks": TASKS, "batches": BATCHES, "requests": REQUESTS, "test_orders": TEST, "variants": VARIANTS}
SHOWN = {
    "tasks": [f"Order(number={number}, text='paper') False" for number in range(3)],
    "batches": ["499500"],
    "requests": ["b'HOW MUCH IS PAPER?'"],
}


LINES = {"tasks": (15, 38), "batches": (7, 15), "requests": (4, 16), "test_orders": (9, 18), "variants": (4, 15)}
"""Lines of code that each program may have, and those that it took before: for the tasks with the wrappers, their words
and codecs alone (`WITHOUT_PROCESSING`), without the clients of a `qsctl.Service`, for the test without the plug-in
(`WITHOUT_PLUG_IN`), for the variants with the plot made by hand.
"""

TEST_SERVICE = """
<dds><queuing_service name="Test"><domain_participant name="P"><domain_id>DOMAIN</domain_id>
<shared_subscriber name="S"><session_settings><session name="s"/></session_settings>
<shared_reader_queue name="Orders" session="s"><topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
<queue_qos><redelivery><response_timeout><duration><sec>1</sec></duration></response_timeout>
<max_delivery_retries>1</max_delivery_retries></redelivery></queue_qos>
</shared_reader_queue></shared_subscriber></domain_participant></queuing_service></dds>
"""


def lines_of(program: str) -> int:
    return len([line for line in program.splitlines() if line.strip()])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_stays_short(name: str) -> None:
    """Each has at most half the lines that it took before."""
    count, (bound, former) = lines_of(PROGRAMS[name]), LINES[name]
    assert count <= bound <= former / 2
    assert LINES["tasks"][1] == lines_of(WITHOUT_PROCESSING)
    assert LINES["test_orders"][1] == lines_of(WITHOUT_PLUG_IN)


class MinimalService(ServiceProcess):
    """The service that the page's reader starts."""

    def start(self) -> None:
        file = self.directory / "USER_QUEUING_SERVICE.xml"
        text = shipped("fixtures/config/starter/minimal.xml").read_text(encoding="utf-8")
        file.write_text(text.replace("<domain_id>0<", f"<domain_id>{self.domain}<"), encoding="utf-8")
        self.arguments = (str(file),)
        super().start()


@pytest.mark.slow
def test_tasks_batches_and_requests_print_what_they_should(
    tmp_path: Path, domain: int, run_python: Callable[..., Any]
) -> None:
    service = MinimalService(tmp_path, domain)
    try:
        with qsctl.Service.connect(f"dds:{domain}") as connected:
            connected.create_queue("Orders")
            connected.create_queue("Requests", reply_type="DDS::Octets")
        for name, lines in (*SHOWN.items(), ("tasks before", SHOWN["tasks"])):
            program = PROGRAMS.get(name, WITHOUT_PROCESSING)
            here = program.replace("domain: int = 0", f"domain: int = {domain}").replace("dds:0", f"dds:{domain}")
            assert here != program
            running = run_python(here)
            shown, _ = running.communicate(timeout=PATIENCE_S)
            assert (shown.splitlines(), running.returncode) == (lines, 0), name
    finally:
        service.end()


@pytest.mark.slow
def test_the_test_of_an_application_passes(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TEST)
    is_found = any(each.name == "qsctl" for each in entry_points(group="pytest11"))
    plugin = () if is_found else ("-p", "qsctl.testing.plugin")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_orders.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_the_test_of_an_application_passes_at_twice_the_length_without_the_plug_in(tmp_path: Path, domain: int) -> None:
    (tmp_path / "service.xml").write_text(TEST_SERVICE.replace("DOMAIN", str(domain)), encoding="utf-8")
    (tmp_path / "test_orders.py").write_text(WITHOUT_PLUG_IN.replace("DOMAIN", str(domain)), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_twenty_variants_become_a_picture(tmp_path: Path, run_python: Callable[..., Any]) -> None:
    running = run_python(VARIANTS)
    shown, _ = running.communicate(timeout=PATIENCE_S)
    assert (shown, running.returncode) == ("", 0)
    picture = (tmp_path / "depths.svg").read_text()
    assert "<svg" in picture
    assert "Share of messages lost" in picture
    assert "20 points" in picture
