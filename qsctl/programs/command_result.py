"""The result of a command for a program: its rows, its JSON document, and conversions to tables of other libraries."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from qsctl.cli.output.results import LinesBlock, MarkdownBlock, Plain, Result, Row, TableBlock, TextBlock
from qsctl.programs._optional_library import optional_library

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

ContentT = TypeVar("ContentT", bound=Result, covariant=True)

_SHOWN_ROWS: Final = 100
"""Largest number of rows of a table in a notebook and in `repr`; larger tables belong in a data frame."""

_WIDTH: Final = 1_000
"""Width of the terminal assumed by `repr`, so that a table is not narrowed."""


class CommandResult(Sequence[Row], Generic[ContentT]):
    """The result of a command: a sequence of the rows that it prints with `-o jsonl`, as mappings, and its other
    output.

    The fields of a row are documented by the command's `--format-help`. `content` is the result object of the command.
    `notes` are the lines that the command writes on standard error.

    >>> import qsctl
    >>> with qsctl.Service.embedded("state") as service:
    ...     created = service.create_queue("Orders")
    ...     [row["queue_name"] for row in service.status()]
    ['DomainParticipant/SharedSubscriber/Orders']
    """

    def __init__(self, content: ContentT, notes: Sequence[str] = ()) -> None:
        self.content: ContentT = content
        """The result object of the command; its attributes may change from version to version."""
        self.notes = tuple(notes)
        """Warnings and remarks of the command."""
        self._rows: Sequence[Row] | None = None

    @property
    def exit_status(self) -> int:
        """The exit status of the command: 0, or a status listed by `qsctl help exit-statuses`."""
        return int(self.content.exit_status)

    def rows(self) -> Sequence[Row]:
        """Return the rows, which are computed once."""
        if self._rows is None:
            self._rows = self.content.rows()
        return self._rows

    def to_dict(self) -> Plain:
        """Return the document that `-o json` prints: an object, or a list of objects."""
        return self.content.document()

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table; a field whose values have several types becomes JSON text."""
        import pyarrow

        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        return pyarrow.table({name: _array([row.get(name) for row in rows]) for name in names})

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame.

        Raises:
            Unavailable: pandas is not installed.
        """
        frame: pandas.DataFrame = optional_library("pandas").DataFrame.from_records(list(map(dict, self.rows())))
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a Polars data frame.

        Raises:
            Unavailable: polars is not installed.
        """
        frame: polars.DataFrame = optional_library("polars").from_arrow(self.to_arrow())
        return frame

    def __len__(self) -> int:
        return len(self.rows())

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __getitem__(self, index: Any) -> Any:
        """Return a row by number, rows by a slice, or the values of a field by its name."""
        if isinstance(index, str):
            return [row[index] for row in self.rows()]
        return self.rows()[index]

    def __repr__(self) -> str:
        """Return the table that the command prints on a terminal, without colors."""
        from rich.console import Console

        out = Console(file=StringIO(), width=_WIDTH, color_system=None, force_terminal=False, highlight=False)
        for block in self.content.blocks():
            if isinstance(block, TableBlock):
                if block.title:
                    out.print(block.title, markup=False)
                out.print(_table(block) if block.rows else block.empty, markup=False)
                if more := _more(block):
                    out.print(more)
            elif isinstance(block, LinesBlock):
                out.print("\n".join(block.lines), markup=False)
            else:
                out.print(block.text, markup=False)
        assert isinstance(out.file, StringIO)
        return "\n".join(line.rstrip() for line in out.file.getvalue().splitlines())

    def _repr_html_(self) -> str:
        """Return the table as HTML, for a notebook."""
        return "".join(map(_as_html, self.content.blocks()))


def _array(values: list[Plain]) -> pyarrow.Array:
    import msgspec
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if each is None else msgspec.json.encode(each).decode() for each in values])


def _cell(value: Plain) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _more(block: TableBlock) -> str:
    more = len(block.rows) - _SHOWN_ROWS
    return f"… and {more:,} more rows" if more > 0 else ""


def _table(block: TableBlock) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for column in block.columns:
        table.add_column(column.heading, justify=column.justify)
    for row in block.rows[:_SHOWN_ROWS]:
        table.add_row(*(Text(_cell(row.get(each.field))) for each in block.columns))
    return table


def _as_html(block: TableBlock | TextBlock | LinesBlock | MarkdownBlock) -> str:
    if isinstance(block, LinesBlock):
        return f"<pre>{html.escape(chr(10).join(block.lines))}</pre>"
    if not isinstance(block, TableBlock):
        return f"<pre>{html.escape(block.text)}</pre>"
    heading = "".join(f"<th>{html.escape(each.heading)}</th>" for each in block.columns)
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(each.field)))}</td>" for each in block.columns) + "</tr>"
        for row in block.rows[:_SHOWN_ROWS]
    )
    rest = f"<p>{_more(block)}</p>" if _more(block) else "" if block.rows else f"<p>{html.escape(block.empty)}</p>"
    title = f"<caption>{html.escape(block.title)}</caption>" if block.title else ""
    return f"<table>{title}<thead><tr>{heading}</tr></thead><tbody>{lines}</tbody></table>{rest}"
