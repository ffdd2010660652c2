"""Where cyclonedds is not installed, as on a Python without a wheel of it: one error, and what works without."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from qsctl.shipped import shipped
from tests.processes import run

PROGRAM = """
import sys
sys.modules["cyclonedds"] = None
from qsctl.__main__ import main
main()
"""
EXAMPLE = str(shipped("fixtures/config/manual/section_3.1.xml"))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("arguments", [["serve", EXAMPLE], ["get", "data", "--service", "dds:7"]])
def test_what_needs_dds_is_refused_clearly(arguments: list[str], tmp_path: Path) -> None:
    done = run([sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path)
    assert done.returncode == ExitStatus.REFUSED, done.stderr
    assert "cyclonedds is not installed for Python 3." in " ".join(done.stderr.split())
    assert "Internal error" not in done.stderr


def test_an_embedded_service_needs_no_dds(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", PROGRAM, "create-queue", "Orders", "--type", "DDS::String"], cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
