"""`--watch`: the same status again and again, in each format, until it is enough."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from qsctl.cli.output.frames import Frame, FramePrinter
from qsctl.cli.output.render import OutputFormat
from qsctl.cli.output.results import Column, Plain, Result, Row, TableBlock
from qsctl.cli.output.view import AS_IT_IS
from qsctl.errors import ExitStatus, NoAnswer
from tests.commands import command_line
from tests.patience import PATIENCE_S
from tests.processes import running

WATCH = ("get", "status", "--watch", "--count", "2", "--interval", "100ms")


class Ten(Result):
    """Ten rows."""

    def rows(self) -> list[Row]:
        return [{"name": f"Q{number}"} for number in range(10)]

    def document(self) -> Plain:
        return self.rows()

    def blocks(self) -> list[TableBlock]:
        return [TableBlock([Column("name", "Name")], self.rows())]


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    environment = {**os.environ, "QSCTL_STATE_DIR": str(tmp_path / "state")}
    for queue in ("Orders", "Jobs"):
        assert CliRunner().invoke(command_line(), ["create-queue", queue], env=environment).exit_code == 0
    return environment


def watched(state: dict[str, str], *arguments: str) -> str:
    done = CliRunner().invoke(command_line(), [*WATCH, *arguments], env=state)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("arguments", [(), ("-o", "json")])
def test_in_a_pipe_each_look_is_a_document_a_line(state: dict[str, str], arguments: tuple[str, ...]) -> None:
    documents = [json.loads(line) for line in watched(state, *arguments).splitlines()]
    assert [len(each["rows"]) for each in documents] == [2, 2]
    assert documents[0]["at"] < documents[1]["at"]
    assert documents[0]["rows"][0]["queue_name"] == "DomainParticipant/SharedSubscriber/Orders"


def test_rows_have_the_time_in_front(state: dict[str, str]) -> None:
    chosen = ("--columns", "queue_name", "--sort", "queue_name")
    lines = [json.loads(line) for line in watched(state, *chosen, "-o", "jsonl").splitlines()]
    assert [[*line] for line in lines] == [["at", "queue_name"]] * 4
    rows = list(csv.DictReader(io.StringIO(watched(state, *chosen, "-o", "csv"))))
    assert [row["queue_name"].rpartition("/")[2] for row in rows] == ["Jobs", "Orders"] * 2, "one heading alone"
    documents = list(yaml.safe_load_all(watched(state, *chosen, "-o", "yaml")))
    assert [len(each["rows"]) for each in documents] == [2, 2]
    assert len(watched(state, "-o", "{{ queue_name }}").splitlines()) == 4


def test_on_a_terminal_a_look_is_drawn_over_the_last_and_ends_where_the_terminal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("LINES", "8")
    monkeypatch.setenv("COLUMNS", "60")
    printer = FramePrinter(OutputFormat.TABLE, AS_IT_IS)
    printer.show(Frame(Ten(), 0, "a title"))
    first = capsys.readouterr().out
    printer.show(Frame(Ten(), 10**9, "a title", NoAnswer("no service answered")))
    second = capsys.readouterr().out
    assert first.startswith("\x1b[2J\x1b[Ha title   1970-01-01T00:00:00.000Z\x1b[K\n")
    assert second.startswith("\x1b[Ha title   Error: no service answered\x1b[K\n"), "it is not cleared again"
    for text in (first, second):
        assert text.count("\n") == 7, "the last line stays free, or the terminal would scroll"
        assert "8 more lines have no room" in text
        assert text.endswith("\x1b[J")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--interval", "5s"), "--interval concerns watching"),
        (("--count", "5"), "--count concerns watching"),
        (("--watch", "--interval", "1ms"), "--interval 1ms is too short"),
        (("--watch", "--interval", "soon"), "--interval"),
    ],
)
def test_watch_options_are_refused_without_watch(
    state: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    done = CliRunner().invoke(command_line(), ["get", "status", *arguments], env=state)
    assert done.exit_code == ExitStatus.USAGE
    assert message in done.stderr


def test_control_c_is_the_end_of_it_and_no_failure(state: dict[str, str]) -> None:
    command = (sys.executable, "-m", "qsctl", "get", "status", "--watch", "--interval", "100ms")
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=state) as process:
        assert process.stdout is not None
        for _ in range(2):
            assert json.loads(process.stdout.readline())["rows"]
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, error) == (ExitStatus.DONE, "")
