"""Man pages: how each part of Markdown looks in them, and that `man` has nothing to say about any."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.cli.help._command_tree import commands
from qsctl.cli.help._roff import man_page
from qsctl.cli.help.topics import topics
from tests.commands import command_line


def body(text: str) -> list[str]:
    """The lines below the heading `DESCRIPTION`."""
    lines = man_page("qsctl-x", 7, "1.0", "what it is", text).splitlines()
    return lines[lines.index(".SH DESCRIPTION") + 1 :]


def test_the_head_names_page_version_and_summary() -> None:
    lines = man_page("qsctl-x", 7, "1.0", "what it is", "# X\n").splitlines()
    assert lines[0] == '.TH "QSCTL-X" 7 "" "qsctl 1.0" "qsctl"'
    assert lines[lines.index(".SH NAME") + 1] == r"qsctl\-x \- what it is"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("A `b-c` **d** *e*\nf.", [".PP", r"A \fBb\-c\fR \fBd\fR \fIe\fR", "f."]),
        (".begins\n'so", [".PP", r"\&.begins", r"\&'so"]),
        ("a\\b ~ ^ \\`", [".PP", r"a\eb \(ti \(ha \(ga"]),
        ("## A \"b\"\n\n### C", ['.SH "A \\(dqb\\(dq"', '.SS "C"']),
        ("```sh\n.x -y\n```", [".PP", ".RS 4", ".nf", r"\&.x \-y", ".fi", ".RE"]),
        ("- a\n- b\n\n  c", [r".IP \(bu 2", "a", r".IP \(bu 2", "b", ".IP", "c"]),
        ("1. a\n2. b", [".IP 1. 4", "a", ".IP 2. 4", "b"]),
        ("- a\n  - b", [r".IP \(bu 2", "a", ".RS 4", r".IP \(bu 2", "b", ".RE"]),
        ("| a | b |\n| --- | --- |\n| c | d |", [".TP", "c", "d"]),
        ("| a | b | e |\n| --- | --- | --- |\n| c | d | f |", [".TP", "c", "b: d", ".br", "e: f"]),
        ("[a](top.md)", [".PP", r"a (qsctl\-top(7))"]),
        ("[a](https://b.c/d)", [".PP", "a (https://b.c/d)"]),
        ("![A screen](pictures/a.svg)", [".PP", r"\fIA screen\fR"]),
    ],
)  # fmt: skip
def test_a_part_of_markdown_in_a_man_page(text: str, lines: list[str]) -> None:
    assert body(f"# X\n\n{text}\n") == lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("man") / "new"
    done = CliRunner().invoke(command_line(), ["help", "--man", str(made)])
    assert done.exit_code == 0, done.output
    return made


@pytest.mark.slow
def test_there_is_a_man_page_of_every_command_and_page(folder: Path) -> None:
    names = {path.name for path in folder.rglob("*.?")}
    assert names == {
        "qsctl.1",
        *(f"qsctl-{each.name.replace(' ', '-')}.1" for each in commands()),
        *(f"qsctl-{each.name}.7" for each in topics()),
    }


LONG_WORDS = "can't break line"
"""A warning about what may go beyond the margin."""


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_lays_every_page_out_without_a_warning(folder: Path) -> None:
    """As `man` runs it, but once for all pages: it is a dozen processes for each."""
    pages = sorted(str(path) for path in folder.rglob("*.?"))
    done = subprocess.run(
        ["groff", "-ww", "-k", "-t", "-mandoc", "-Tutf8", "-rLL=80n", *pages],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "GROFF_NO_SGR": "1"},
    )
    assert [line for line in done.stderr.splitlines() if LONG_WORDS not in line] == []
    assert re.sub(".\b", "", done.stdout).count("\nNAME\n") == len(pages)


@pytest.mark.skipif(shutil.which("man") is None or shutil.which("groff") is None, reason="man is not installed")
def test_man_shows_a_page_of_each_kind_without_a_warning(folder: Path) -> None:
    pages = [str(next(folder.rglob(name))) for name in ("qsctl.1", "qsctl-get-status.1", "qsctl-tutorial.7")]
    done = subprocess.run(
        ["man", "--warnings=w", "-E", "utf8", "-l", *pages],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"},
    )
    assert [line for line in done.stderr.splitlines() if LONG_WORDS not in line] == []
    assert done.stdout.count("\nNAME\n") == len(pages)
    assert "qsctl get status [QUEUE] [OPTIONS]" in done.stdout
