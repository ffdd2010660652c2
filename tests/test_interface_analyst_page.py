"""The page "A morning of an interface analyst", typed in, and the commands of "Watching an integration engine"."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.cli.help.topics import GROUPS
from tests.commands import command_line
from tests.documents import ROOT, page, tour

MORNING = page("interface-analyst")
WATCH = page("engine-watch")
MEANT = {
    "/var/dumps": "fixtures/dumps/morning", "DATABASE": "ward.recovery", "THREAD": "lab_out", "SCENARIO": "ward",
}  # fmt: skip
"""What the names in the page's commands are here."""


def typed(line: str) -> tuple[int, str]:
    program, *words = shlex.split(line)
    if program != "qsctl":
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
        return 0, done.stdout.rstrip("\n")
    result = CliRunner().invoke(command_line(), words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, (result.stdout + result.stderr).rstrip("\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    shutil.copytree(ROOT / "fixtures" / "dumps", tmp_path / "fixtures" / "dumps")
    return tmp_path


@pytest.mark.slow
def test_the_morning_prints_what_its_page_shows(folder: Path) -> None:
    (alerts,) = re.findall(r"^```text\n(\{ALERT.*?)^```", MORNING, re.DOTALL | re.MULTILINE)
    (folder / "site.alrt").write_text(alerts, encoding="utf-8")
    commands = tour(MORNING)
    assert {word for line, _ in commands for word in line.split()[1:3]} >= {
        "show",
        "dump",
        "resend",
        "move",
        "check",
        "run",
    }
    for line, output in commands:
        if "--hl7" in line and importlib.util.find_spec("hl7") is None:
            continue
        assert typed(line)[1] == output, line


def test_each_of_the_ten_alerts_is_a_command_that_gives_a_status(folder: Path) -> None:
    lines = re.findall(r"`(qsctl check engine /var/dumps [^`]*)`", WATCH.partition("## Alert files")[0])
    assert len(lines) == 10
    statuses = []
    for line in lines:
        status, output = typed(line.replace("/var/dumps", "fixtures/dumps/morning"))
        assert output.startswith(("OK: ", "WARNING: ", "CRITICAL: ")), (line, output)
        statuses.append(status)
    assert set(statuses) == {0, 1, 2}


def test_each_question_is_answered_by_a_command_that_exists(folder: Path) -> None:
    assert typed("qsctl engine run ward --until 50s --database ward.recovery")[0] == 0
    assert typed("qsctl engine dump ward.recovery -e --write-meta edited.meta -C")[0] == 0
    shutil.copy(folder / "fixtures" / "dumps" / "long.txt", folder / "listing.txt")
    section = WATCH.partition("## Questions that people ask")[2]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) == 7
    for _, answer in rows:
        (line, *_) = re.findall(r"`(qsctl [^`]*)`", answer)
        for name, value in MEANT.items():
            line = line.replace(name, value)
        status, output = typed(line)
        assert status in {0, 1, 2} if " check " in line else status == 0, (line, output)


def test_the_pages_are_listed() -> None:
    named = {name for names in GROUPS.values() for name in names}
    assert {"interface-analyst", "engine-watch"} <= named
