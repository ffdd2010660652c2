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
PROGRAMS = {"tasks": TASKS, "batches": BATCHES, "requests": REQUESTS, "test_orders": TEST, "variants": VARIANTS}
SHOWN = {
    "tasks": [f"Order(number={number}, text='paper') False" for number in range(3)],
    "batches": ["499500"],
    "requests": ["b'HOW MUCH IS PAPER?'"],
}


LINES = {"tasks": 17, "batches": 7, "requests": 4, "test_orders": 13, "variants": 5}
"""Lines of code at most: half of what the same took before there was `qsctl.Service`."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_stays_short(name: str) -> None:
    assert len([line for line in PROGRAMS[name].splitlines() if line.strip()]) <= LINES[name]


class MinimalService(ServiceProcess):
    """The service that the page's reader starts."""

    def start(self) -> None:
        file = self.directory / "USER_QUEUING_SERVICE.xml"
        text = shipped("fixtures/config/starter/minimal.xml").read_text(encoding="utf-8")
        file.write_text(text.replace("<domain_id>0<", f"<domain_id>{self.domain}<"), encoding="utf-8")
        self._arguments = (str(file),)
        super().start()


def test_tasks_batches_and_requests_print_what_they_should(
    tmp_path: Path, domain: int, run_python: Callable[..., Any]
) -> None:
    service = MinimalService(tmp_path, domain)
    try:
        with qsctl.Service.connect(f"dds:{domain}") as connected:
            connected.create_queue("Orders")
            connected.create_queue("Requests", reply_type="DDS::Octets")
        for name, lines in SHOWN.items():
            program = PROGRAMS[name]
            here = program.replace("domain: int = 0", f"domain: int = {domain}").replace("dds:0", f"dds:{domain}")
            assert here != program
            running = run_python(here)
            shown, _ = running.communicate(timeout=PATIENCE_S)
            assert (shown.splitlines(), running.returncode) == (lines, 0), name
    finally:
        service.end()


def test_the_test_of_an_application_passes(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TEST)
    is_found = any(each.name == "qsctl" for each in entry_points(group="pytest11"))
    plugin = () if is_found else ("-p", "qsctl.testing.plugin")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_orders.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_twenty_variants_become_a_picture(tmp_path: Path, run_python: Callable[..., Any]) -> None:
    running = run_python(VARIANTS)
    shown, _ = running.communicate(timeout=PATIENCE_S)
    assert (shown, running.returncode) == ("", 0)
    picture = (tmp_path / "depths.svg").read_text()
    assert "<svg" in picture
    assert "Share of messages lost" in picture
    assert "20 points" in picture
