"""Declared results: help, documents, rows and tables follow from one declaration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

import pytest

from qsctl.cli.output.declared import (
    DeclaredResult,
    DeclaredRows,
    Heading,
    any_known,
    declared,
    read,
    row_of,
    table_of,
    varied,
)
from qsctl.cli.output.render import OutputFormat, show
from qsctl.cli.output.results import Column
from qsctl.cli.output.view import check_fields, view_of
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal


class Kind(StrEnum):
    """A kind of queue."""

    PLAIN = "plain"


ServiceField: TypeAlias = Annotated[str, "the service", Heading("Service", when=varied)]


@dataclass(frozen=True)
class Line:
    """A row of every kind of field."""

    service: ServiceField
    queue: Annotated[str, "name of the queue", Heading("Queue")]
    held: Annotated[int | None, "samples", Heading("Held", short="H", rank=2, when=any_known)]
    age_s: Annotated[float, "age in seconds", Heading("Age", shown=lambda value: f"{value:g} s", cell="age")]
    kind: Annotated[Kind, "kind of the queue"]
    place: Annotated[Path | str, Heading("Where", "right")]
    secret: str = "never shown"


@dataclass(frozen=True)
class Lines(DeclaredRows, rows=Line, items="lines"):
    """Rows, with a field that the document has besides and one whose type is not imported."""

    source: Annotated[str, "the source"]
    lines: Sequence[Line]
    weight: Decimal | None = None

    document_help: ClassVar[Mapping[str, str]] = {"notes": "what else there is"}


@dataclass(frozen=True)
class Written(DeclaredResult):
    """One object."""

    file: Annotated[Path, "the file"]
    kinds: Annotated[tuple[Kind, ...], "what is in it"] = ()
    text: str = ""


LINES = Lines("here", (Line("One", "Q", 3, 1.5, Kind.PLAIN, Path("x")), Line("One", "R", None, 2, Kind.PLAIN, "y")))
DOCUMENT = [
    {"service": "One", "queue": "Q", "held": 3, "age_s": 1.5, "kind": "plain"},
    {"service": "One", "queue": "R", "held": None, "age_s": 2, "kind": "plain"},
]


def test_help_lists_the_fields_of_rows_then_those_of_the_document() -> None:
    assert Lines.field_help == {
        "service": "the service",
        "queue": "name of the queue",
        "held": "samples",
        "age_s": "age in seconds",
        "kind": "kind of the queue",
        "source": "the source",
        "notes": "what else there is",
    }
    assert list(Lines.field_help)[-2:] == ["source", "notes"]
    assert Written.field_help == {"file": "the file", "kinds": "what is in it"}


def test_documents_have_the_fields_with_help_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert LINES.rows() == LINES.document() == DOCUMENT
    assert Written(Path("a/b"), (Kind.PLAIN,), "…").document() == {"file": "a/b", "kinds": ["plain"]}
    show(LINES, OutputFormat.JSONL)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == DOCUMENT


def test_table_has_the_fields_with_a_heading_alone() -> None:
    table = LINES.table()
    assert table.columns == [
        Column("queue", "Queue"),
        Column("held", "Held", "right", "H", 2),
        Column("age", "Age", "right"),
        Column("place", "Where", "right"),
    ]
    assert table.rows == [
        {"queue": "Q", "held": 3, "age": "1.5 s", "place": "x"},
        {"queue": "R", "held": None, "age": "2 s", "place": "y"},
    ]


def test_column_is_left_out_unless_its_condition_holds() -> None:
    others = (*LINES.lines, Line("Two", "Q", 1, 1, Kind.PLAIN, "z"))
    assert [column.heading for column in table_of(Line, others).columns] == ["Service", "Queue", "Held", "Age", "Where"]
    assert [column.heading for column in table_of(Line, LINES.lines[1:]).columns] == ["Queue", "Age", "Where"]


def test_order_and_headings_of_a_table_may_depend_on_the_data() -> None:
    table = table_of(Line, LINES.lines, order=("place", "queue", "held"), leave_out=("held",), headings={"queue": "Q?"})
    assert [column.heading for column in table.columns] == ["Where", "Q?"]
    assert table_of(Line, (), empty="Nothing.").rows == []
    with pytest.raises(KeyError):
        table_of(Line, LINES.lines, order=("nothing",))


def test_columns_option_shows_the_raw_value_under_the_fields_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    show(LINES, OutputFormat.TABLE, view_of("age_s,held", "", "", wide=False))
    assert capsys.readouterr().out.splitlines()[0].split("  ") == ["age s", " Held"]


def test_unknown_column_is_refused_before_the_command_runs() -> None:
    for kind in (Lines, Written):
        with pytest.raises(UsageError, match="not a field of the result's rows"):
            check_fields(view_of("place", "", "", wide=False), kind)


def test_items_of_another_class_are_rows_where_they_have_the_attributes() -> None:
    item = SimpleNamespace(service="S", queue="Q", held=1, age_s=0.5, kind=Kind.PLAIN, other=1)
    assert row_of(Line, item) == {"service": "S", "queue": "Q", "held": 1, "age_s": 0.5, "kind": "plain"}
    made = read(Line, item, held=7, place="p", secret="s")
    assert made == Line("S", "Q", 7, 0.5, Kind.PLAIN, "p", "s")
    with pytest.raises(AttributeError, match="place"):
        read(Line, item, secret="s")
    with pytest.raises(TypeError, match="hold"):
        read(Line, item, place="p", secret="s", hold=7)


def test_bases_are_declared_first() -> None:
    @dataclass(frozen=True)
    class Longer(Line):
        more: Annotated[int, "how many more"] = 0

    assert list(declared(Longer)) == [*declared(Line), "more"]


def test_items_are_named_by_an_attribute() -> None:
    with pytest.raises(AssertionError, match="row is an attribute"):

        class _Misnamed(DeclaredRows, rows=Line, items="row"):
            rows_of_it: tuple[Line, ...]


def test_rows_have_fields() -> None:
    with pytest.raises(AssertionError, match="Kind declares no field"):

        class _Empty(DeclaredRows, rows=Kind):
            """Rows of a class that declares nothing."""


def test_subclass_has_the_rows_of_its_base_and_fields_of_its_own() -> None:
    @dataclass(frozen=True)
    class Longer(Lines):
        extent: Annotated[int, "how far it goes"] = 0

    assert list(Longer.field_help) == ["service", "queue", "held", "age_s", "kind", "source", "extent", "notes"]
    assert Longer("here", LINES.lines).rows() == DOCUMENT
    assert Longer.row_fields == Lines.row_fields == ("service", "queue", "held", "age_s", "kind")
