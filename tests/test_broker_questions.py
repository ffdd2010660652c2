"""The pages about queues of any broker, typed in: ten public questions, each on a screen, and where they begin."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.cli.help.topics import topics
from tests.commands import command_line
from tests.documents import page, tour

COLUMNS = 110
LINES_MAX = 50
QUESTIONS = [each.name for each in topics() if each.group == "Questions about queues"]
PAGES = ["brokers", *QUESTIONS]


def typed(line: str) -> str:
    words = shlex.split(line)
    assert words.pop(0) == "qsctl"
    done = CliRunner().invoke(command_line(), words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return (done.stdout + done.stderr).rstrip("\n")


def test_there_are_ten_questions_each_with_its_place() -> None:
    assert len(QUESTIONS) == 10
    for name in QUESTIONS:
        assert page(name).splitlines()[0].endswith("?")
        assert "\nAsked as issue " in page(name) or "\nAsked as question " in page(name)
        assert f"`qsctl help {name}`" in page("brokers")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_fits_on_a_screen(name: str) -> None:
    lines = page(name).splitlines()
    assert len(lines) <= LINES_MAX
    assert [line for line in lines if len(line) > 200] == [], "a command may be long"


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    commands = tour(page(name))
    assert commands
    for command, output in commands:
        printed = [line.rstrip() for line in typed(command).splitlines()]
        for line in (each for each in output.splitlines() if each != " …"):
            assert line.rstrip() in printed, (command, line, printed)
