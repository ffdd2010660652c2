"""The page "My subscriber is slow, this afternoon", typed in against a simulated broker on loopback, over TLS."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests import broker_server as b
from tests.broker_story import Story
from tests.commands import command_line
from tests.documents import page, tour

ADDRESS = "https://broker.example:943"
TEXT = page("slow-this-afternoon")


class Clock:
    """Time that passes when it is waited for."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


def typed(line: str, typed_in: str = "") -> str:
    words = shlex.split(line)
    assert words.pop(0) == "qsctl"
    done = CliRunner().invoke(command_line(), words, input=typed_in)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert b.PASSWORD not in done.output
    return (done.stdout + done.stderr).rstrip("\n")


@pytest.mark.slow
def test_the_page_prints_what_it_shows_and_changes_the_broker_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("broker", "work"):
        (tmp_path / name).mkdir()
    tls = b.certificate(tmp_path)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("QSCTL_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr("qsctl.cli.simulation.options.captures.time", Clock())
    (change,) = re.findall(r"^```json\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    Path("eliding.json").write_text(change)
    (add,) = [line for line in TEXT.splitlines() if line.startswith("qsctl context add")]
    story = Story(tmp_path / "broker")
    with story.served(tls) as server:
        line = f"{add.replace(ADDRESS, server.url)} --broker-ca-file {tls[0]}"
        assert "is added" in typed(line, f"{b.PASSWORD}\n")
        commands = tour(TEXT)
        assert len(commands) >= 8
        for command, output in commands:
            if "apply" in command:
                assert not [method for method, _ in server.requests if method == "PATCH"], "nothing before"
            printed = [line.split() for line in typed(command).replace(server.url, ADDRESS).splitlines()]
            for line in (each for each in output.splitlines() if each != " …" and "──" not in each):
                words = line.removesuffix("…").split()
                assert any(found[: len(words)] == words for found in printed), (command, line, printed)
        assert [method for method, _ in server.requests if method not in {"GET", "POST"}] == ["PATCH"]
        assert {path for method, path in server.requests if method == "POST"} == {"/SEMP"}
