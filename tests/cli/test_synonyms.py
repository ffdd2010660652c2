"""An option by the word of another program is answered with the command's own."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from qsctl.cli._synonyms import SYNONYMS, options_meant
from qsctl.errors import ExitStatus
from tests.commands import command_line


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("consume Orders --limit 5", "--count"),
        ("consume Orders --max-messages 5", "--count"),
        ("consume Orders --bootstrap-server x", "--service"),
        ("produce Orders --payload x", "--text"),
        ("create-queue Orders --max-length 5", "--max-count"),
        ("create-queue Orders --delivery-limit 5", "--max-delivery-retries"),
        ("create-queue Orders --dmq Dead", "--dead-letter"),
        ("get status --domainId 7", "--service"),
    ],
)
def test_the_option_that_is_meant_is_suggested(line: str, option: str) -> None:
    done = CliRunner().invoke(command_line(), line.split())
    assert done.exit_code == ExitStatus.USAGE
    assert f"(Possible options: {option}" in " ".join(done.stderr.replace("│", " ").split())


def test_a_word_is_suggested_only_where_the_command_has_it() -> None:
    assert options_meant("--limit", ["--timeout"]) == []
    assert options_meant("--unheard-of", ["--timeout"]) == []
    assert options_meant("--ackmode", ["--reject", "--no-ack"]) == ["--no-ack"]


def test_each_word_means_an_option_that_some_command_has() -> None:
    known: set[str] = set()
    for line in ("consume", "create-queue", "produce", "move", "peek", "get status"):
        done = CliRunner().invoke(command_line(), [*line.split(), "--help"], env={"COLUMNS": "200"})
        known.update(word for word in done.stdout.replace("│", " ").split() if word.startswith("--"))
    assert {option for options in SYNONYMS.values() for option in options} <= known
