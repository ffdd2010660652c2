"""Cheat sheets: each fits on a screen, and every command and option of it exists."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from qsctl.cli._rti_options import in_our_spelling
from qsctl.cli._synonyms import SYNONYMS
from qsctl.cli.help._command_tree import commands
from qsctl.cli.help.topics import topics
from qsctl.cli.output._markdown import show_markdown
from tests.commands import command_line
from tests.documents import page

SHEETS = [each.name for each in topics() if each.group == "Cheat sheets"]
LINES_MAX, COLUMNS = 50, 80


def commands_of(name: str) -> list[str]:
    """The command lines of a sheet, without their comments."""
    blocks = re.findall(r"```sh\n(.*?)```", page(name), re.DOTALL)
    lines = [re.sub(r"\s+#.*", "", line) for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("qsctl ")]


ALL = [pytest.param(line, id=line) for name in SHEETS for line in commands_of(name)]


def test_there_is_one_for_each_reader() -> None:
    assert SHEETS == ["cheat-operator", "cheat-rti", "cheat-solace", "cheat-engine", "cheat-words"]


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_fits_on_a_screen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    out = Console(file=stream, force_terminal=True, width=COLUMNS, height=LINES_MAX, color_system=None)
    show_markdown(out, page(name))
    lines = [line.rstrip() for line in stream.getvalue().strip("\n").splitlines()]
    assert len(lines) <= LINES_MAX
    assert [line for line in lines if len(line) > COLUMNS] == []


@pytest.mark.parametrize("name", SHEETS)
def test_no_line_of_a_block_is_cut(name: str) -> None:
    blocks = re.findall(r"```\w+\n(.*?)```", page(name), re.DOTALL)
    assert [line for block in blocks for line in block.splitlines() if len(line) > COLUMNS - 1] == []


@pytest.mark.parametrize("line", ALL)
def test_a_command_of_a_sheet_can_be_typed(line: str) -> None:
    """It is parsed to its end: command, arguments, and each option with a value that it takes."""
    words = in_our_spelling(shlex.split(line)[1:])
    found = [each for each in commands() if list(each.words) == words[: len(each.words)]]
    assert found, f"there is no such command: {line}"
    known = {name.strip(): each for each in found[0].parameters for name in each.name.split(",")}
    rest = words[len(found[0].words) :]
    options = [word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)]
    assert set(options) <= set(known)
    taken = sum(1 for option in options if not known[option].is_flag)
    given = len(rest) - len(options) - taken
    required = [each for each in found[0].parameters if each.is_argument and each.is_required]
    assert given >= len(required), f"{line}: {[each.name for each in required]}"


def test_the_operators_sheet_works_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QSCTL_CONFIG", str(tmp_path / "config.toml"))
    CliRunner().invoke(command_line(), ["init", "service.xml"])
    CliRunner().invoke(command_line(), ["key", "create", "admin.key"])
    for line in commands_of("cheat-operator"):
        words = shlex.split(line)[1:]
        if words[0] == "plan":
            Path("queues.xml").write_text(CliRunner().invoke(command_line(), ["get", "config", "-o", "xml"]).stdout)
        if words[0] in ("top", "doctor"):  # one is for a terminal, the other about this machine
            continue
        done = CliRunner().invoke(command_line(), words)
        assert done.exit_code == 0, f"{line}: {done.output}"


def test_words_name_options_that_exist_and_errors_understand_those_of_others() -> None:
    sheet = page("cheat-words")
    (table,) = re.findall(r"```text\n(.*?)```", sheet, re.DOTALL)
    ours = {word for line in table.splitlines()[1:] for word in re.findall(r"--[a-z-]+", line[:23])}
    known = {name.strip() for each in commands() for option in each.parameters for name in option.name.split(",")}
    assert len(ours) >= 9
    assert ours <= known
    named = {line[:23].split(",")[0].split()[0] for line in table.splitlines()[1:]}
    assert {"produce", "consume", "peek", "move", "requeue", "flush-queue", "export"} <= named & {
        each.name for each in commands()
    }
    assert "--count" in SYNONYMS["--max-messages"]
