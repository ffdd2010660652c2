"""The pages of the documentation: what each begins with, where its links lead, and how `qsctl help` shows them."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from qsctl.cli.help._command_tree import commands
from qsctl.cli.help.reference import REFERENCES
from qsctl.cli.help.topics import FOLDER, GROUPS, MORE, page, summary_of, topics
from qsctl.cli.output._markdown import show_markdown, with_commands_for_links
from qsctl.errors import ExitStatus
from tests.commands import command_line

NAMES = [topic.name for topic in topics()]
WRITTEN = sorted(path.stem for path in FOLDER.glob("*.md"))
COMMANDS = {each.name for each in commands()} | {each.words[0] for each in commands()}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), ["help", *arguments])


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_begins_with_its_heading_and_a_sentence(name: str) -> None:
    text = page(name)
    assert re.match(r"# \S.*\n\n\S", text)
    assert len(re.findall(r"^# ", prose(text), re.MULTILINE)) == 1
    assert 20 <= len(summary_of(text)) <= 200


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_page_lead_somewhere(name: str) -> None:
    text = prose(page(name))
    mentioned = set(re.findall(r"`qsctl help ([a-z][a-z -]*)`", text))
    assert mentioned - set(NAMES) - COMMANDS == set()
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not target.startswith(("http", "#"))]
    pages = [target.partition("#")[0] for target in targets if not target.startswith("pictures/")]
    assert [each for each in pages if each.removesuffix(".md") not in NAMES] == []
    assert [each for each in targets if each.startswith("pictures/") and not (FOLDER / each).is_file()] == []


@pytest.mark.parametrize("name", WRITTEN)
def test_every_block_of_a_page_is_closed_and_has_a_language(name: str) -> None:
    fences = re.findall(r"^```(.*)$", page(name), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert [fence for fence in fences[::2] if not fence] == []


def test_the_list_has_every_page_once() -> None:
    listed = [row["name"] for row in json.loads(run("-o", "json").stdout)]
    assert sorted(listed) == sorted(set(listed)) == sorted({*WRITTEN, *REFERENCES})
    assert {topic.group for topic in topics()} <= {*GROUPS, MORE}


def test_a_pipe_gets_the_page_as_it_was_written() -> None:
    assert run("tutorial").stdout == (FOLDER / "tutorial.md").read_text(encoding="utf-8")


def test_a_command_and_a_group_are_topics() -> None:
    assert run("get", "status").stdout.startswith("# qsctl get status\n")
    assert re.findall(r"^# (.*)", run("record").stdout, re.MULTILINE) == [
        "qsctl record start", "qsctl record stop", "qsctl record status",
    ]  # fmt: skip


def test_an_unknown_topic_names_those_that_were_meant() -> None:
    done = run("tutorail")
    assert done.exit_code == ExitStatus.NOT_FOUND
    assert "tutorial" in done.stderr


def test_a_topic_beside_man_is_refused() -> None:
    assert run("tutorial", "--man", "x").exit_code == ExitStatus.USAGE


def test_a_terminal_gets_the_page_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    out = Console(file=stream, force_terminal=True, width=60, height=50, color_system=None)
    show_markdown(out, "# Heading\n\nSee [the tour](tutorial.md), `code` and\n\n- one\n\n```sh\nqsctl help\n```\n")
    text = stream.getvalue()
    assert "# Heading" not in text
    assert "the tour (qsctl help tutorial), code" in text
    assert "• one" in text


def test_links_become_the_commands_that_show_the_pages() -> None:
    text = "[`qsctl help top`](top.md#keys), [keys](top.md#keys), ![A screen.](pictures/top.svg), [a](https://b.c)"
    assert with_commands_for_links(text) == ("`qsctl help top`, keys (`qsctl help top`), *A screen.*, [a](https://b.c)")
