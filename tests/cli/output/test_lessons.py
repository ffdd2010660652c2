"""What pages teach is on the screen of a narrow terminal, too: the tables of their lessons, as files.

To make a file of `lessons` anew, delete it and run the test, which writes it and fails once; then read what it has.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from qsctl.cli.administer.get_results import Statuses
from qsctl.cli.output import render
from qsctl.cli.output.results import Result
from qsctl.client.administration import FromService
from qsctl.core.statistics.status import SharedReaderQueueStatus, StatisticMetrics, StatisticVariable
from tests.commands import command_line

FOLDER = Path(__file__).parent / "lessons"
WIDTHS = (80, 120)
LONG_NAME = "orders.of.the.customers.in.the.north.that.are.delivered.on.the.same.day"


@pytest.fixture
def result_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run a command once, in an empty directory; what it would print."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NDDSHOME", raising=False)
    monkeypatch.setenv("QSCTL_CONFIG", str(tmp_path / "config.toml"))

    def made(*words: str) -> Result:
        found: list[Result] = []
        with monkeypatch.context() as patched:
            patched.setattr(render, "show", lambda result, *_: found.append(result))
            done = CliRunner().invoke(command_line(), words)
        assert done.exit_code == 0, done.output
        return found[-1]

    return made


def without_rates(status: SharedReaderQueueStatus) -> SharedReaderQueueStatus:
    """A status whose rates, which depend on the machine, are the same everywhere."""
    rate = StatisticVariable(StatisticMetrics(1000, 1, 123.45, 123.45, 123.45, 0.0))
    return msgspec.structs.replace(status, enqueue_throughput=rate, dequeue_throughput=rate, sending_throughput=rate)


def on_a_terminal(result: Result, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of a width shows of a result, without how long the run took."""
    stream = io.StringIO()
    out = Console(file=stream, width=width, force_terminal=True, color_system=None, highlight=False, markup=False)
    with monkeypatch.context() as patched:
        patched.setattr(render, "console", lambda _stream: out)
        patched.setattr(render, "is_unicode", lambda: True)
        render.show(result, render.OutputFormat.TABLE)
    text = re.sub(r"^[\d,]+ messages in .*?counters\.$", "SPEED", stream.getvalue(), flags=re.DOTALL | re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def assert_shown(name: str, result: Result, monkeypatch: pytest.MonkeyPatch, lesson: dict[int, list[str]]) -> None:
    """The tables are those of the files, and have the figures that the page speaks of; no line is wider."""
    for width in WIDTHS:
        shown = on_a_terminal(result, width, monkeypatch)
        assert [line for line in shown.splitlines() if len(line) > width] == []
        words = " ".join(shown.split())
        for each in lesson[width]:
            assert each in words, f"{each!r} is not shown at {width} columns:\n{shown}"
        file = FOLDER / f"{name}-{width}.txt"
        if not file.exists():
            file.write_text(shown, encoding="utf-8")
            pytest.fail(f"{file} is written: read it, and run the test again")
        assert shown == file.read_text(encoding="utf-8")


def test_what_a_burst_loses(result_of: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """`qsctl help tutorial`: D-1 discards 8,175 messages, and what the others wait."""
    result = result_of("simulate", "burst", "--set", "horizon=2s", "--out", "before")
    lesson = ["D-1", "8175", "313k", "Discards", "Deliv", "p99"]
    assert_shown("burst", result, monkeypatch, {80: lesson, 120: [*lesson, "Wait max"]})


@pytest.mark.slow
def test_what_a_crash_may_do(result_of: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """`qsctl help integration-engine`: where an engine may be interrupted, and that no promise is broken."""
    result = result_of("engine", "crash-points", "engine-crash-points", "--every", "16")
    lesson = ["Violations", "a step in memory only", "removal: delivered"]
    assert_shown("crash-points", result, monkeypatch, dict.fromkeys(WIDTHS, lesson))


def test_the_state_of_a_queue_with_a_long_name(
    result_of: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One name of 70 letters takes no figure from the other queues."""
    for words in (
        ("create-queue", "DeadLetters", "--as-dead-letter"),
        ("create-queue", "Orders", "--dead-letter", "DeadLetters"),
        ("create-queue", LONG_NAME),
        ("produce", "Orders", "--text", "a", "--count", "12"),
        ("consume", "Orders", "--count", "5"),
        ("consume", "Orders", "--reject"),
    ):
        assert CliRunner().invoke(command_line(), words).exit_code == 0
    result = result_of("get", "status")
    assert isinstance(result, Statuses)
    result = Statuses(tuple(FromService(each.service, without_rates(each.body)) for each in result.statuses))
    lesson = ["Held", "Sent", "Redel", "Fail", "Exp", "Orders 6 0", "1 0 0"]
    assert_shown("status", result, monkeypatch, dict.fromkeys(WIDTHS, lesson))
