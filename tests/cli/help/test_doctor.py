"""`qsctl doctor`: PySpark and the versions that qsctl is tested with."""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path

import pytest

from qsctl.cli.help.doctor import pyspark_finding
from tests.cli.shell import Shell

REQUIREMENT = next(each for each in requires("qsctl") or () if each.startswith("pyspark"))


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("3.5.9", False), ("4.0.0", True), ("4.2.1", True), ("4.3.0.dev1", True), ("4.4.0", False), ("5.0.0", False),
        ("unknown", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("requirement", ["pyspark>=4.0,<4.4", "pyspark<4.4,>=4.0"])
def test_pyspark_beyond_the_versions_of_qsctl_is_a_note_with_the_command_for_another(
    version: str, good: bool, requirement: str
) -> None:
    finding = pyspark_finding(version, requirement)
    assert (finding.good, finding.needed) == (good, False)
    assert finding.found == f"{version}; qsctl is made for 4.0 to 4.3"
    assert finding.remedy == f"pip install '{requirement}'"


def test_doctor_shows_pyspark_with_its_range_and_java(tmp_path: Path) -> None:
    done = Shell(tmp_path)("doctor", "-o", "json")
    (found,) = [each for each in done.document["findings"] if each["part"] == "pyspark"]
    assert found["good"]
    assert found["found"].endswith(pyspark_finding("4.0", REQUIREMENT).found.removeprefix("4.0"))
    (java,) = [each for each in done.document["findings"] if each["part"] == "Java"]
    assert re.match(r"\d+\.\S* from ", java["found"])
