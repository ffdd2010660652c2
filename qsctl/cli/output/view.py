"""The fields of a result that are shown, their order and form: `--columns`, `--sort`, `--wide`, a template.

Decides the meaning of a field's name in each format. Fields are those of a result's rows, as `--format-help` lists
them, independently of a table's headings. With `--columns`, JSON and YAML are a list of flat objects, as CSV and JSON
lines always are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from qsctl.cli.output.results import Block, Column, LazyRows, PartialResult, Plain, Result, Row, TableBlock
from qsctl.errors import UsageError

_DIGITS: Final = re.compile(r"(\d+)")
_NAMED_MAX: Final = 30
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class SortKey:
    """A field to sort rows by."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The presentation of a result; by default the command's own."""

    columns: tuple[str, ...] = ()
    sort: tuple[SortKey, ...] = ()
    template: str = ""
    wide: bool = False


AS_IT_IS: Final = View()


def view_of(columns: str, sort: str, template: str, *, wide: bool) -> View:
    """Return the view that the values of the options describe.

    Raises:
        UsageError: a list has an empty name, or names a field twice.
    """
    names = _names(columns, "--columns")
    keys = tuple(SortKey(name.removeprefix("-"), descending=name.startswith("-")) for name in _names(sort, "--sort"))
    return View(names, keys, template, wide)


def check_fields(view: View, kind: type[Result]) -> None:
    """Refuse a view that the result does not support, before the command does anything.

    Raises:
        UsageError: rows that are printed as they arrive are to be sorted, or the rows do not have a named field.
    """
    if view.sort and issubclass(kind, PartialResult):
        raise UsageError(
            "--sort needs all rows, and this command prints each as it arrives",
            remedy="Leave --sort out; sort what it printed, as in `… -o csv | sort`.",
        )
    if kind.row_fields:
        _check_names(view, kind.row_fields)


def viewed(result: Result, view: View) -> Result:
    """Return the result with a view's columns and order.

    Raises:
        UsageError: the result does not have a named field.
    """
    if not view.columns and not view.sort:
        return result
    rows = result.rows()
    if not rows:
        _check_names(view, result.field_help)
        return result
    names = rows.names if isinstance(rows, LazyRows) else list(dict.fromkeys(name for row in rows for name in row))
    _check_names(view, names)
    return _Viewed(result, view, rows)


class _Viewed(Result):
    """A result with selected fields or sorted rows; its XML and metrics are unchanged.

    Args:
        result: the command's result.
        view: with columns or sort keys.
        rows: the result's rows; at least one.
    """

    def __init__(self, result: Result, view: View, rows: Sequence[Row]) -> None:
        self._result = result
        self._view = view
        self._order = _order(rows, view.sort) if view.sort else None
        ordered = rows if self._order is None else [rows[at] for at in self._order]
        self._rows = ordered if not view.columns else _chosen(ordered, view.columns)
        self.xml = result.xml  # type: ignore[method-assign]
        self.prometheus = result.prometheus  # type: ignore[method-assign]

    def rows(self) -> Sequence[Row]:
        """Return the rows in their order, with the selected fields."""
        return self._rows

    def document(self) -> Plain:
        """Return a list of the rows; without `--columns` the result's document, sorted if it has one item per row."""
        if self._view.columns:
            return self._rows
        document = self._result.document()
        return (
            self._sorted(document) if isinstance(document, Sequence) and not isinstance(document, str) else self._rows
        )

    def blocks(self) -> Sequence[Block]:
        """Return one table of the selected fields; without `--columns` the result's blocks, with the table sorted."""
        blocks = self._result.blocks()
        tables = [block for block in blocks if isinstance(block, TableBlock)]
        if self._view.columns:
            return [
                TableBlock(
                    [_column(name, tables, self._rows) for name in self._view.columns], self._rows, keeps_columns=True
                )
            ]
        if len(tables) == 1 and len(tables[0].rows) == len(self._rows):
            table = TableBlock(tables[0].columns, self._sorted(tables[0].rows), tables[0].title, tables[0].empty)
            return [table if block is tables[0] else block for block in blocks]
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        return [TableBlock([_column(name, tables, self._rows) for name in names], self._rows)]

    def _sorted(self, items: Sequence[_Item]) -> list[_Item]:
        if self._order is None or len(items) != len(self._order):
            return list(items)
        return [items[at] for at in self._order]


def _names(listed: str, option: str) -> tuple[str, ...]:
    if not listed.strip():
        return ()
    names = tuple(each.strip() for each in listed.split(","))
    bare = [name.removeprefix("-") if option == "--sort" else name for name in names]
    for name in bare:
        if not name or bare.count(name) > 1:
            fault = f"names {name!r} twice" if name else "has an empty name"
            raise UsageError(
                f"{option} {listed!r} {fault}", remedy="Write fields separated by commas; --format-help lists them."
            )
    return names


def _check_names(view: View, known: Iterable[str]) -> None:
    import difflib

    names = list(known)
    for option, wanted in (("--columns", view.columns), ("--sort", [key.field for key in view.sort])):
        for name in wanted:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
                listed = ", ".join(names[:_NAMED_MAX]) + (", …" if len(names) > _NAMED_MAX else "")
                raise UsageError(
                    f"{option} names {name!r}, which is not a field of the result's rows",
                    remedy=f"Did you mean {' or '.join(near)}?" if near else f"The fields are {listed}.",
                )


def _chosen(rows: Sequence[Row], names: Sequence[str]) -> Sequence[Row]:
    if isinstance(rows, LazyRows):
        return LazyRows(rows, list(names), lambda row: {name: row.get(name) for name in names})
    return [{name: row.get(name) for name in names} for row in rows]


def _column(name: str, tables: Sequence[TableBlock], rows: Sequence[Row]) -> Column:
    """Return the command's own column for a field, else one with the field's name as heading."""
    for table in tables:
        for column in table.columns:
            if column.field == name:
                return column
    is_figure = all(_is_figure(row.get(name)) for row in rows[:1000])
    return Column(name, name.replace("_", " "), "right" if is_figure else "left")


def _is_figure(value: Plain) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _order(rows: Sequence[Row], keys: Sequence[SortKey]) -> list[int]:
    """Return the indexes of rows in stable sorted order, rows without a value last in either direction."""
    order = list(range(len(rows)))
    for key in reversed(keys):
        values = [row.get(key.field) for row in rows]
        present = [at for at in order if values[at] is not None]
        present.sort(key=_by(values), reverse=key.descending)
        order = present + [at for at in order if values[at] is None]
    return order


def _by(values: Sequence[Plain]) -> Callable[[int], tuple[int, list[tuple[int, float, str]]]]:
    """Return a sort key by row index: numbers by size before texts, and texts in natural order (Q2 before Q10)."""

    def key(at: int) -> tuple[int, list[tuple[int, float, str]]]:
        value = values[at]
        if isinstance(value, int | float):
            return 0, [(0, float(value), "")]
        parts = _DIGITS.split(str(value).casefold())
        return 1, [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts if part]

    return key
