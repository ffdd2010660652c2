"""`CommandResult`: rows of a command as tables of other libraries."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from qsctl import CommandResult
from qsctl.cli.output.results import ListResult, Row
from qsctl.errors import Unavailable


@dataclass(frozen=True)
class Listed(ListResult):
    """Rows as they are given."""

    listed: tuple[Row, ...]

    field_help: ClassVar[Mapping[str, str]] = {"name": "a name", "count": "a count"}

    def rows(self) -> Sequence[Row]:
        return self.listed


TWO = CommandResult(Listed(({"name": "a<b>[red]", "count": 1}, {"name": "é", "count": None})))


def test_rows_are_a_sequence() -> None:
    assert len(TWO) == 2
    assert [row["count"] for row in TWO] == TWO["count"] == [1, None]
    assert TWO[0]["name"] == "a<b>[red]"
    assert TWO[1:] == (TWO[1],)
    assert json.loads(json.dumps(TWO.to_dict())) == [dict(each) for each in TWO]


def test_arrow_has_a_column_for_each_field() -> None:
    table = TWO.to_arrow()
    assert table.to_pylist() == [dict(each) for each in TWO]
    assert str(table.schema.field("count").type) == "int64"


def test_arrow_has_json_where_a_field_is_of_several_kinds() -> None:
    mixed = CommandResult(Listed(({"value": 1}, {"value": "x"}, {"value": [1, "x"]}, {"other": 2})))
    assert mixed.to_arrow().to_pylist() == [
        {"value": "1", "other": None},
        {"value": '"x"', "other": None},
        {"value": '[1,"x"]', "other": None},
        {"value": None, "other": 2},
    ]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_have_the_rows_or_name_what_is_missing(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    to_frame = getattr(TWO, f"to_{library}")
    with monkeypatch.context() as changed:
        changed.setattr("qsctl.programs._optional_library.importlib.import_module", absent)
        with pytest.raises(Unavailable, match=f"{library} is not installed") as refused:
            to_frame()
    assert f"pip install {library}" in refused.value.remedy
    try:
        importlib.import_module(library)
    except ModuleNotFoundError:
        pytest.skip(f"{library} is not installed")
    assert list(to_frame()["name"]) == ["a<b>[red]", "é"]


def test_repr_is_the_table_of_the_command() -> None:
    lines = repr(TWO).splitlines()
    assert any("name" in line and "count" in line for line in lines)
    assert any("a<b>[red]" in line and "1" in line for line in lines)


def test_a_notebook_shows_text_and_no_markup_of_the_data() -> None:
    shown = TWO._repr_html_()
    assert "a&lt;b&gt;[red]" in shown
    assert "<b>" not in shown


def test_many_rows_are_cut_in_what_is_shown() -> None:
    many = CommandResult(Listed(tuple({"name": f"n{at}"} for at in range(1_000))))
    assert "900 more rows" in repr(many)
    assert "900 more rows" in many._repr_html_()
    assert len(repr(many).splitlines()) < 120
