"""Results as JSON and CSV: what goes out a piece at a time is what would go out as a whole."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qsctl.cli.administer.get_results import Messages
from qsctl.cli.output.render import OutputFormat, show
from qsctl.cli.output.results import LazyRows, Plain, Result, Row
from qsctl.cli.output.shown_text import shown_json
from qsctl.client.administration import FromService
from qsctl.core.admin.reply import MessageData, MessageStatus
from qsctl.identity import Guid, SampleIdentity

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@dataclass(frozen=True)
class Given(Result):
    """A result of a test's choice."""

    value: Plain
    field_help: ClassVar = {}

    def document(self) -> Plain:
        """What was given."""
        return self.value


def printed(result: Result, output: OutputFormat, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    show(result, output)
    return capsys.readouterr().out


def messages(contents: Sequence[bytes]) -> Messages:
    writer = Guid(b"w" * 16)
    return Messages(
        tuple(
            FromService(
                "One",
                MessageData("P/S/Q", at, MessageStatus.SENT, SampleIdentity(writer, at), each, len(each), 1, 0, False),
            )
            for at, each in enumerate(contents, 1)
        )
    )


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PLAIN)
def test_json_is_laid_out_as_a_whole(capsys: pytest.CaptureFixture[str], value: Plain) -> None:
    whole = shown_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert printed(Given(value), OutputFormat.JSON, capsys) == whole + "\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=20), max_size=5))
@example([b"\r"])
@example([b"=1", b"'=1", b"''", b"-5", b"-x"])
@example([b"a\rb", b"\r\n", b"\n", b"", b" ", b'"'])
def test_samples_are_the_same_in_every_format(capsys: pytest.CaptureFixture[str], contents: list[bytes]) -> None:
    result = messages(contents)
    rows = list(result.rows())
    assert json.loads(printed(result, OutputFormat.JSON, capsys)) == rows
    assert [json.loads(line) for line in printed(result, OutputFormat.JSONL, capsys).splitlines()] == rows
    read = list(csv.DictReader(io.StringIO(printed(result, OutputFormat.CSV, capsys), newline="")))
    assert [row["payload"].removeprefix("'") for row in read] == [row["payload"] for row in rows], "no formulas"
    assert not [row["payload"] for row in read if row["payload"][:1] in {"=", "@"}]
    assert all(list(row) == list(result.field_help) for row in rows), "every field is explained, in the order of CSV"


def test_lazy_rows_are_a_sequence_and_made_when_read() -> None:
    made: list[int] = []

    def make(number: int) -> Row:
        made.append(number)
        return {"number": number}

    rows = LazyRows([1, 2, 3], ["number"], make)
    assert (len(rows), made) == (3, [])
    assert rows[1] == {"number": 2}
    assert list(rows[1:]) == [{"number": 2}, {"number": 3}]
    assert list(rows) == list(rows)
    assert made == [2, 2, 3, 1, 2, 3, 1, 2, 3]
