"""`--columns`, `--sort` and templates: the same fields in every format."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from qsctl.cli.output.render import OutputFormat, show
from qsctl.cli.output.results import Column, Plain, Result, Row, TableBlock
from qsctl.cli.output.template import line_maker
from qsctl.cli.output.view import View, view_of, viewed
from qsctl.errors import ExitStatus, UsageError
from tests.commands import command_line
from tests.documents import page, shown


@dataclass(frozen=True)
class Queues(Result):
    """Rows of a test's choice, with a document that is deeper than they are."""

    found: tuple[Row, ...]
    field_help: ClassVar = {"name": "its name", "held": "samples", "rate": "a second"}

    def document(self) -> Plain:
        return [{**row, "nested": [1]} for row in self.found]

    def rows(self) -> Sequence[Row]:
        return self.found

    def blocks(self) -> list[TableBlock]:
        return [TableBlock([Column("name", "Queue"), Column("held", "Held", "right")], self.found)]


QUEUES = Queues(
    (
        {"name": "Q10", "held": 5, "rate": None},
        {"name": "q2", "held": 70, "rate": 1.5},
        {"name": "Q1", "held": 5, "rate": 0.5},
    )
)


def view(columns: str = "", sort: str = "", template: str = "") -> View:
    return view_of(columns, sort, template, wide=False)


def printed(capsys: pytest.CaptureFixture[str], shown: View, output: OutputFormat = OutputFormat.TABLE) -> str:
    show(QUEUES, output, shown)
    return capsys.readouterr().out


def test_columns_are_the_same_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = view("rate,name")
    expected = [{"rate": row["rate"], "name": row["name"]} for row in QUEUES.found]
    assert json.loads(printed(capsys, wanted, OutputFormat.JSON)) == expected
    assert yaml.safe_load(printed(capsys, wanted, OutputFormat.YAML)) == expected
    assert [json.loads(line) for line in printed(capsys, wanted, OutputFormat.JSONL).splitlines()] == expected
    assert printed(capsys, wanted, OutputFormat.CSV) == "rate,name\n,Q10\n1.5,q2\n0.5,Q1\n"
    assert printed(capsys, wanted) == "rate   Queue\n────────────\n       Q10\n 1.5   q2\n 0.5   Q1\n"


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ("name", ["Q1", "q2", "Q10"]),
        ("-name", ["Q10", "q2", "Q1"]),
        ("held", ["Q10", "Q1", "q2"]),
        ("-held,name", ["q2", "Q1", "Q10"]),
        ("rate", ["Q1", "q2", "Q10"]),
        ("-rate", ["q2", "Q1", "Q10"]),
    ],
)
def test_rows_are_sorted_as_people_do_and_what_is_missing_is_last(
    capsys: pytest.CaptureFixture[str], keys: str, order: list[str]
) -> None:
    document = json.loads(printed(capsys, view(sort=keys), OutputFormat.JSON))
    assert [each["name"] for each in document] == order
    assert all(each["nested"] == [1] for each in document), "the document itself, not the flat rows"
    table = printed(capsys, view(sort=keys)).splitlines()
    assert table[0] == "Queue   Held"
    assert [line.split()[0] for line in table[2:]] == order


@pytest.mark.slow
@given(st.lists(st.none() | st.integers() | st.text(max_size=5) | st.booleans(), min_size=1, max_size=8))
def test_whatever_the_values_are_sorting_loses_none(values: list[Plain]) -> None:
    rows = tuple({"name": str(at), "held": value} for at, value in enumerate(values))
    for keys in ("held", "-held"):
        found = viewed(Queues(rows), view(sort=keys)).rows()
        assert sorted(str(row["name"]) for row in found) == sorted(str(row["name"]) for row in rows)
        missing = [row["held"] is None for row in found]
        assert missing == sorted(missing)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (view("nme"), "--columns names 'nme', which is not a field"),
        (view(sort="-hold"), "--sort names 'hold', which is not a field"),
    ],
)
def test_a_field_that_is_not_there_is_refused_with_the_nearest(wanted: View, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        viewed(QUEUES, wanted)
    assert refused.value.remedy in ("Did you mean name?", "Did you mean held?")
    with pytest.raises(UsageError, match=message):
        viewed(Queues(()), wanted)


@pytest.mark.parametrize("listed", ["name,", ",", "name,name", "name, ,held"])
def test_a_list_with_nothing_or_twice_the_same_is_refused(listed: str) -> None:
    with pytest.raises(UsageError, match="--columns"):
        view(listed)


def test_a_template_makes_a_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, view(sort="held", template=r"{{ name }}\t{{ '%04d' % held }}")) == (
        "Q10\t0005\nQ1\t0005\nq2\t0070\n"
    )


@pytest.mark.parametrize(
    "template",
    [
        "{{ name",
        "{{ nome }}",
        "{{ name.__class__.__mro__ }}",
        "{{ held / 0 }}",
        "{% for x in name %}",
        "{{ held | no }}",
    ],
)
def test_a_template_that_is_none_is_one_error(template: str) -> None:
    with pytest.raises(UsageError, match="-o"):
        line_maker(template)(QUEUES.found[0])


def test_what_a_template_prints_on_a_terminal_is_nothing_that_it_obeys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = Queues(({"name": "a\x1b[31mb"},))
    show(evil, OutputFormat.TABLE, view(template="{{ name }}"))
    assert capsys.readouterr().out == "a\x1b[31mb\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    show(evil, OutputFormat.TABLE, view(template="{{ name }}"))
    assert capsys.readouterr().out == "a\\x1b[31mb\n"


def invoke(tmp_path: Path, *arguments: str, given: str | None = None) -> tuple[int, str, str]:
    done = CliRunner().invoke(
        command_line(), list(arguments), input=given, env={"QSCTL_STATE_DIR": str(tmp_path / "state")}
    )
    return done.exit_code, done.stdout, done.stderr


def test_a_command_that_changes_something_refuses_a_wrong_field_before_it_does(tmp_path: Path) -> None:
    assert invoke(tmp_path, "create-queue", "Orders", "--columns", "nme")[0] == ExitStatus.USAGE
    assert invoke(tmp_path, "get", "status", "-o", "{{ queue_name }}") == (0, "", "")
    assert invoke(tmp_path, "create-queue", "Orders", "--columns", "return_code,resource", "-o", "csv")[0] == 0
    status, out, _ = invoke(
        tmp_path, "produce", "Orders", "--text", "one", "--columns", "queue_name,accepted,rejected", "-o", "csv"
    )
    assert (status, out) == (0, "queue_name,accepted,rejected\nDomainParticipant/SharedSubscriber/Orders,1,0\n")
    assert invoke(tmp_path, "consume", "Orders", "-o", "{{ payload ")[0] == ExitStatus.USAGE
    assert invoke(tmp_path, "consume", "Orders", "--sort", "identity")[0] == ExitStatus.USAGE
    assert invoke(tmp_path, "get", "status", "-o", "{{ current_message_count }}") == (0, "1\n", "")
    assert invoke(tmp_path, "consume", "Orders", "-o", "{{ payload }} {{ attempt }}") == (0, "one 1\n", "")


def test_a_format_that_is_none_is_refused_with_those_that_are(tmp_path: Path) -> None:
    status, _, error = invoke(tmp_path, "get", "status", "-o", "tabel")
    assert status == ExitStatus.USAGE
    assert "'tabel' is not one of 'table', 'json'" in " ".join(error.replace("│", " ").split())


def test_the_page_of_tables_shows_what_is_printed(tmp_path: Path) -> None:
    for queue in ("Orders", "Orders.Priority"):
        assert invoke(tmp_path, "create-queue", queue)[0] == 0
    for number in range(3):
        assert invoke(tmp_path, "produce", "Orders", "--text", f"order {number}")[0] == 0
    commands = shown(page("tables"))
    assert len(commands) >= 3
    for command, output in commands.items():
        program, *arguments = shlex.split(command)
        assert program == "qsctl"
        assert invoke(tmp_path, *arguments) == (0, f"{output}\n", "")
