"""Declared results: the fields of a row are written once, and everything that a result needs follows from them.

A row is a frozen dataclass. Beside a field's type, `Annotated` has its help, a text with meaning and unit; and, where
the field is a column of the table, a `Heading`:

    @dataclass(frozen=True)
    class StateRow:
        state: Annotated[int, "number of the queue", Heading("State")]
        queue: Annotated[str, "name of the queue", Heading("Queue", rank=1)]
        oldest_s: Annotated[float | None, "age of its oldest message in seconds", Heading("Oldest", shown=age_text)]
        database: Annotated[str, "recovery or errors"]
        summary: Annotated[str, Heading("Means")]

    @dataclass(frozen=True)
    class States(DeclaredRows, rows=StateRow, items="states"):
        states: Sequence[StateRow]

Fields with help, here all but `summary`, are what `--format-help` lists and what JSON, YAML and CSV have, in this
order; fields with a heading, here all but `database`, are the columns of the table. `States` needs no method. Its items
may also be objects of another class that has attributes of these names; `read` makes rows of such objects with some
fields computed. A result without rows, a `DeclaredResult`, declares its own fields in the same way.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import get_annotations
from itertools import repeat
from typing import Any, ClassVar, Literal, TypeVar

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, plain

_RowT = TypeVar("_RowT")
_NUMBERS = (int, float, int | None, float | None)
_PLAIN_TYPES = frozenset({bool, int, float, str, type(None)})


@dataclass(frozen=True, slots=True)
class Heading:
    """The column of a declared field.

    Args:
        text: the heading; an empty one is a column without heading.
        justify: alignment; by default numbers are aligned to the right.
        short: the heading on a narrow terminal.
        rank: the higher, the less important the column; a narrow terminal leaves out the highest ranks first.
        shown: returns a cell's text for a value; by default the value itself is shown.
        cell: name of the cell, if `--columns` shows another value under the field's name: `age` of `age_s`.
        when: returns, from the field's values, whether the table has the column.
    """

    text: str
    justify: Literal["left", "right"] | None = None
    short: str = ""
    rank: int = 0
    shown: Callable[[Any], Plain] | None = None
    cell: str = ""
    when: Callable[[Sequence[Any]], bool] | None = None


def varied(values: Sequence[object]) -> bool:
    """Return whether values differ: a `when` for columns that distinguish rows of several sources."""
    return len(set(values)) > 1


def any_known(values: Sequence[object]) -> bool:
    """Return whether some value is not None: a `when` for columns whose values may all be unknown."""
    return any(each is not None for each in values)


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field of a declaration; without help it appears in tables only, without a heading never in tables."""

    name: str
    type: Any
    help: str
    heading: Heading | None

    def column(self, text: str | None = None) -> Column:
        """Return the field's column, with another heading if `text` is given."""
        heading = self.heading
        assert heading is not None, "columns are declared with a heading"
        return Column(
            heading.cell or self.name,
            heading.text if text is None else text,
            heading.justify or ("right" if self.type in _NUMBERS else "left"),
            heading.short,
            heading.rank,
        )


_DECLARED: dict[type, Mapping[str, DeclaredField]] = {}


def declared(declaring: type) -> Mapping[str, DeclaredField]:
    """Return the fields of a class that are annotated with help or a heading, by name, inherited ones first."""
    found = _DECLARED.get(declaring)
    if found is None:
        found = _DECLARED[declaring] = {
            name: field for base in reversed(declaring.__mro__) for name, field in _own_fields(base)
        }
    return found


def _own_fields(declaring: type) -> Iterator[tuple[str, DeclaredField]]:
    """Yield the annotated fields of a class itself, without those of its bases."""
    names = vars(sys.modules[declaring.__module__])
    # Other fields may have types that are imported for type checking alone.
    texts = {
        name: text
        for name, text in get_annotations(declaring).items()
        if str(text).startswith("Annotated[") or hasattr(names.get(text), "__metadata__")
    }
    marked = type(declaring.__name__, (), {"__annotations__": texts, "__module__": declaring.__module__})
    hints = typing.get_type_hints(marked, include_extras=True)
    for name, hint in hints.items():
        marks = hint.__metadata__
        help_text = next((each for each in marks if isinstance(each, str)), "")
        heading = next((each for each in marks if isinstance(each, Heading)), None)
        yield name, DeclaredField(name, hint.__origin__, help_text, heading)


_DOCUMENTED: dict[type, Mapping[str, str]] = {}


def documented(declaring: type) -> Mapping[str, str]:
    """Return the help of each declared field that documents contain."""
    found = _DOCUMENTED.get(declaring)
    if found is None:
        found = _DOCUMENTED[declaring] = {name: field.help for name, field in declared(declaring).items() if field.help}
    return found


def row_of(row_type: type, item: object) -> dict[str, Plain]:
    """Return the documented fields of an item as data."""
    names = documented(row_type)
    return {
        name: value if type(value) in _PLAIN_TYPES else plain(value)
        for name, value in zip(names, map(getattr, repeat(item), names), strict=True)
    }


def read(row_type: type[_RowT], item: object, /, **computed: object) -> _RowT:
    """Return a row whose fields are the `computed` ones, or else the attributes of an item."""
    for name in row_type.__dataclass_fields__:  # type: ignore[attr-defined]
        if name not in computed:
            computed[name] = getattr(item, name)
    return row_type(**computed)


def table_of(
    row_type: type,
    items: Sequence[object],
    *,
    title: str = "",
    empty: str = "(none)",
    order: Sequence[str] = (),
    leave_out: Collection[str] = (),
    headings: Mapping[str, str] | None = None,
    keeps_columns: bool = False,
) -> TableBlock:
    """Return items as a table.

    Args:
        row_type: class that declares the columns.
        items: one per line, with the declared attributes.
        title: of the table.
        empty: text shown in place of a table without lines.
        order: fields to show, in this order; by default those with a heading, as they are declared.
        leave_out: fields that are not shown.
        headings: headings that depend on the data, by field.
        keeps_columns: whether all columns are kept on a narrow terminal.
    """
    every = declared(row_type)
    columns: list[Column] = []
    cells: list[list[Plain]] = []
    for name in order or every:
        field = every[name]
        if field.heading is None or name in leave_out:
            continue
        values = [getattr(item, name) for item in items]
        if field.heading.when is not None and not field.heading.when(values):
            continue
        columns.append(field.column((headings or {}).get(name)))
        if field.heading.shown is not None:
            values = [field.heading.shown(value) for value in values]
        cells.append([value if type(value) in _PLAIN_TYPES else plain(value) for value in values])
    names = [column.field for column in columns]
    rows: list[Row] = [dict(zip(names, line, strict=True)) for line in zip(*cells, strict=True)]
    return TableBlock(columns, rows, title, empty, keeps_columns)


class DeclaredResult(Result):
    """Base class of results that are one object: the document has the fields that the subclass declares."""

    document_help: ClassVar[Mapping[str, str]] = {}
    """Help of the document's undeclared fields, such as nested ones."""

    def __init_subclass__(cls) -> None:
        """Derive the help of all fields from the declarations."""
        super().__init_subclass__()
        cls.row_fields = tuple(documented(cls))
        cls.field_help = {**documented(cls), **cls.document_help}

    def document(self) -> Plain:
        """Return the declared fields."""
        return row_of(type(self), self)


class DeclaredRows(Result):
    """Base class of results that are rows: the document is their list, and the table shows them.

    Fields that the subclass itself declares are added to the document; the subclass then defines `document`, as in
    `{**row_of(States, self), "states": self.rows()}`.
    """

    row_type: ClassVar[type]
    items_name: ClassVar[str] = ""
    document_help: ClassVar[Mapping[str, str]] = {}
    """Help of the document's undeclared fields, such as nested ones."""

    def __init_subclass__(cls, *, rows: type | None = None, items: str = "") -> None:
        """Derive the help of all fields from the declarations of the rows and of the result.

        Args:
            rows: class that declares the fields of a row; by default that of the base class.
            items: name of the attribute with an object for each row; by default that of the base class. If neither is
                given, the subclass defines `items`.
        """
        super().__init_subclass__()
        assert not items or any(items in get_annotations(base) for base in cls.__mro__), f"{items} is an attribute"
        cls.row_type = rows or cls.row_type
        assert documented(cls.row_type), f"{cls.row_type.__name__} declares no field"
        cls.items_name = items or cls.items_name
        cls.row_fields = tuple(documented(cls.row_type))
        cls.field_help = {**documented(cls.row_type), **documented(cls), **cls.document_help}

    def items(self) -> Sequence[object]:
        """Return an object for each row, with the attributes that the row type declares."""
        found: Sequence[object] = getattr(self, self.items_name)
        return found

    def rows(self) -> Sequence[Row]:
        """Return the documented fields of each item."""
        return [row_of(self.row_type, each) for each in self.items()]

    def document(self) -> Plain:
        """Return a list with one object per row."""
        return self.rows()

    def table(self) -> TableBlock:
        """Return the items as a table."""
        return table_of(self.row_type, self.items())

    def blocks(self) -> Sequence[Block]:
        """Return the table alone."""
        return [self.table()]
