"""The result of a command: data with stable names, and its presentation as a table.

A result is a frozen dataclass. `document()` is what `-o json` and `-o yaml` print, `rows()` what `-o csv` and `-o
jsonl` print, `blocks()` what `-o table` shows. Nothing here prints.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec

from qsctl.errors import ExitStatus, UsageError

Plain: TypeAlias = bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"] | None
Row: TypeAlias = Mapping[str, Plain]


_Item = TypeVar("_Item")


class LazyRows(Sequence[Row], Generic[_Item]):
    """Rows that are made when they are read, and not stored, since there may be millions.

    Args:
        items: the objects to make rows of.
        names: the fields of every row.
        make: returns the row of an item.
    """

    def __init__(self, items: Sequence[_Item], names: Sequence[str], make: Callable[[_Item], Row]) -> None:
        self.names = names
        self._items = items
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Row]:
        return map(self._make, self._items)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """Return one row, or a lazy slice of them."""
        if isinstance(index, slice):
            return LazyRows(self._items[index], self.names, self._make)
        return self._make(self._items[index])


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the row's field, its heading, and its alignment.

    On a terminal that is too narrow for the table, the heading is the `short` one, and columns are left out: those of
    the highest `rank` first, of equal ones the last first.
    """

    field: str
    heading: str
    justify: Literal["left", "right"] = "left"
    short: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table for display. Its cells are the rows' fields; None is an empty cell.

    With `keeps_columns` no column is left out on a narrow terminal, since the user asked for each of them.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    empty: str = "(none)"
    keeps_columns: bool = False


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Lines of text for display; `style` is `plain`, `good`, `bad` or `faint`."""

    text: str
    style: Literal["plain", "good", "bad", "faint"] = "plain"


@dataclass(frozen=True, slots=True)
class LinesBlock:
    """Lines that are made as they are printed and never folded: for scripts, possibly millions."""

    lines: Iterable[str]


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A page of the documentation."""

    text: str


Block: TypeAlias = TableBlock | TextBlock | LinesBlock | MarkdownBlock


def plain(value: object) -> Plain:
    """Return a value as JSON data: enums by value, octets in hexadecimal, paths as text, dataclasses as objects."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return plain(value.value) if isinstance(value.value, str) else value.name
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return str(value)


def fields_of(item: object, *names: str) -> dict[str, Plain]:
    """Return attributes of an object as JSON data by name; without names all fields of a dataclass or struct."""
    if names:
        return {name: plain(getattr(item, name)) for name in names}
    found = plain(item)
    assert isinstance(found, dict), "a dataclass or a struct"
    return found


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number} {noun}{'s' * (number != 1)}"


class Result:
    """Base class of every result. Subclasses are frozen dataclasses whose fields are the document.

    `field_help` has the meaning and unit of each field of a row: `--format-help` prints it.
    """

    field_help: ClassVar[Mapping[str, str]] = {}

    row_fields: ClassVar[tuple[str, ...]] = ()
    """The fields of every row, if they are always the same: unknown ones are then refused before anything is done.

    Results of commands that change something define it.
    """

    @property
    def exit_status(self) -> IntEnum:
        """Return the command's exit status once the result is printed: an `ExitStatus`, except for `qsctl check`."""
        return ExitStatus.DONE

    def document(self) -> Plain:
        """Return the document for `-o json` and `-o yaml`."""
        return plain(self)

    def rows(self) -> Sequence[Row]:
        """Return one flat mapping per line for `-o csv` and `-o jsonl`."""
        document = self.document()
        if isinstance(document, Mapping):
            return [document]
        if isinstance(document, Sequence) and not isinstance(document, str):
            return [row for row in document if isinstance(row, Mapping)]
        return [{"value": document}]

    def xml(self) -> str:
        """Return the document for `-o xml`, if the result has one.

        Raises:
            UsageError: this command's result has no XML.
        """
        raise UsageError("this command prints no XML", remedy="Choose -o table, json, jsonl, yaml or csv.")

    def prometheus(self) -> str:
        """Return the metrics for `-o prometheus`, if the result has any.

        Raises:
            UsageError: this command's result has no metrics.
        """
        raise UsageError("this command prints no metrics", remedy="Choose -o table, json, jsonl, yaml or csv.")

    def blocks(self) -> Sequence[Block]:
        """Return the tables and texts for `-o table`, in order."""
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        return [TableBlock([Column(name, name.replace("_", " ")) for name in names], rows)]


class ListResult(Result):
    """Base class of results whose document is the list of their rows."""

    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """Return one flat mapping per line, which is also one object of the list."""

    def document(self) -> Plain:
        """Return a list with one object per row."""
        return self.rows()


class PartialResult(ListResult):
    """One of several results that a command yields and that are printed as one list and one table."""

    @property
    def is_last(self) -> bool:
        """Return whether no part follows, so that the printed document is complete with this one."""
        return False

    @abstractmethod
    def table(self) -> TableBlock:
        """Return this part's rows as a table."""

    def blocks(self) -> Sequence[Block]:
        """Return the table alone."""
        return [self.table()]


@dataclass(frozen=True)
class Done(Result):
    """The confirmation of a completed action, in one sentence."""

    message: str

    field_help: ClassVar[Mapping[str, str]] = {"message": "what was done"}
    row_fields: ClassVar[tuple[str, ...]] = ("message",)

    def blocks(self) -> Sequence[Block]:
        """Return the sentence."""
        return [TextBlock(self.message)]
