"""What peers and files write reaches a terminal as text: nothing that it obeys, whatever is printed and wherever."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from qsctl.cli.output import render
from qsctl.cli.output.render import OutputFormat
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock
from qsctl.cli.output.shown_text import shown, shown_in_line, shown_json
from qsctl.errors import Refused

EVIL = "a\x1b]0;title\x07b\x9b31mc\x7fd\u202ee\u2066f\u2028g\rh\U000e0041i\ud800j"
OBEYED = set("\x1b\x07\x9b\x7f\u202e\u2066\u2028\r\U000e0041\ud800")


@dataclass(frozen=True)
class Evil(Result):
    """A result with a peer's text everywhere."""

    text: str = EVIL

    field_help: ClassVar[Mapping[str, str]] = {"service": "the replying service"}

    def document(self) -> Plain:
        return [{"service": self.text, "nested": [self.text]}]

    def rows(self) -> list[Row]:
        return [{"service": self.text, "nested": [self.text]}]

    def blocks(self) -> list[Block]:
        columns = [Column("service", "Service"), Column("nested", "Nested")]
        return [
            TextBlock(f"{self.text}: OK", "good"),
            TableBlock(columns, self.rows(), title=self.text),
            TableBlock(columns, [], empty=self.text),
        ]


def test_each_character_that_a_terminal_obeys_is_an_escape() -> None:
    assert shown(EVIL) == ("a\\x1b]0;title\\x07b\\x9b31mc\\x7fd\\u202ee\\u2066f\\u2028g\\rh\\U000e0041i\\ud800j")
    assert shown("two\nlines\tand a tab") == "two\nlines\tand a tab"
    assert shown_in_line("two\nrows") == "two\\nrows"


def test_text_of_people_stays_as_it_is() -> None:
    for text in ("Überraschung", "中文 日本", "العربية", "naïve – “quoted”", "👩\u200d🚀", "می\u200cخواهم"):
        assert shown(text) == text


@given(st.text())
def test_nothing_shown_is_a_control_character(text: str) -> None:
    for line in (shown(text), shown_in_line(text)):
        line.encode()
        assert not {each for each in line if unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"}} - {"\n", "\t"}
    assert not {"\n", "\t"} & set(shown_in_line(text))


@given(st.text(st.characters()))
def test_json_has_the_same_text_in_other_escapes(text: str) -> None:
    written = shown_json(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert not OBEYED & set(written)


@pytest.mark.parametrize("output", [OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.YAML])
def test_no_output_for_people_or_programs_holds_what_a_terminal_obeys(
    output: OutputFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    render.show(Evil(), output)
    text = capsys.readouterr().out
    assert not OBEYED & set(text), text
    assert "title" in text
    match output:
        case OutputFormat.JSON:
            assert json.loads(text) == [{"service": EVIL, "nested": [EVIL]}]
        case OutputFormat.YAML:
            assert yaml.safe_load(text)[0]["service"].replace("\ud800", "") == EVIL.replace("\ud800", "")
        case _:
            pass


def test_csv_stays_the_data_in_a_file_and_is_escaped_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'a\x1b[31m,\u202e"b"'
    render.show(Evil(text), OutputFormat.CSV)
    written = capsys.readouterr().out
    assert next(csv.DictReader(io.StringIO(written, newline="")))["service"] == text
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    render.show(Evil(text), OutputFormat.CSV)
    assert not OBEYED & set(capsys.readouterr().out)


@pytest.mark.parametrize("output", [OutputFormat.TABLE, OutputFormat.JSON])
def test_an_error_and_a_note_hold_nothing_that_a_terminal_obeys(
    output: OutputFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    render.show_error(Refused(f"ERROR: {EVIL}", remedy=EVIL), output)
    render.note(EVIL)
    text = capsys.readouterr().err
    assert not OBEYED & set(text), text
    assert "title" in text
