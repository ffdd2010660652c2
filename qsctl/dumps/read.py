"""A listing of the recovery or error database to messages: short, long and extended form, also one after the other.

Decides: what a line is. Messages are yielded as they are understood; what is not is noted with its line, and raised at
the end, so that a file's problems are known in one run. A file of any size takes the memory of its longest line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from qsctl.declared.problems import ProblemList
from qsctl.dumps._columns import STANDARD, ListingColumns, columns_of, is_heading, is_lower_heading, is_rule, is_stacked
from qsctl.dumps._extended_block import Block
from qsctl.dumps._fields import is_start, knows, other_name, split, unescaped
from qsctl.dumps._rows import find_id, read_row
from qsctl.dumps._values import Trouble
from qsctl.dumps.lines import LineError, lines_of
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import DateOrder, Moment, parse_moment

KNOWN: Final = "a row with a message id as in [0.1.42], a line `name : value` of a message, or a heading"

_ECHO: Final = re.compile(
    r".{0,300}?\b(?:hcidbdump|qsctl engine dump)\b.*|\s*(?:recovery|error) database\b.{0,100}", re.I
)
"""The command that was typed, and titles."""
_TOTAL: Final = re.compile(r"Total: (\d{1,18}) messages?")
_OTHER_TOTAL: Final = re.compile(r"\s*(?:total\b.{0,80}|\d{1,18} (?:messages?|records?|msgs?)\b.{0,80})", re.IGNORECASE)
NO_DATE: Final = "(no date)"
"""In the place of the date in the long form."""
_LONGEST_DATE: Final = 40
_MOST_STACKED: Final = 6
_MOST_CONTINUED: Final = 20


def read_messages(
    stream: BinaryIO,
    name: str,
    *,
    encoding: str | None = None,
    order: DateOrder = DateOrder.MONTH_FIRST,
    with_data: bool = False,
) -> Iterator[ListedMessage]:
    """Yield the messages of a listing in its order; exhaust the iterator before using them.

    Args:
        stream: the listing; read once.
        name: its name in problems.
        encoding: of its text; None: that of its byte order mark, else UTF-8.
        order: of dates in numbers.
        with_data: whether the data of messages is kept.

    Raises:
        InvalidFile: at the end, with every line that is not understood, or as soon as there are as many as are shown.
    """
    return _LineReader(stream, name, encoding, order, with_data=with_data).messages()


_REMEDY: Final = (
    "Correct or remove these lines, or capture the whole output anew; other encodings are named with --encoding, "
    "dates with the day first with --date-order dmy."
)


class _OpenRow:
    """A row that the following lines may continue, as in the long form."""

    def __init__(self, values: dict[str, Any], *, is_broken: bool, goes_on: bool) -> None:
        self.values = values
        self.is_broken = is_broken
        """Whether a value was not understood; such a row is only counted."""
        self.goes_on = goes_on
        self.lines = 0


class _LineReader:
    """A reader that processes the lines of a listing in one pass."""

    def __init__(self, stream: BinaryIO, name: str, encoding: str | None, order: DateOrder, *, with_data: bool) -> None:
        self._lines = lines_of(stream, encoding)
        self._encoding = encoding or "utf-8"
        self._order = order
        self._with_data = with_data
        self._problems = ProblemList(name)
        self._number = 0
        self._columns = STANDARD
        self._stacked: list[tuple[int, str]] = []
        self._heading: str | None = None
        self._day: Moment | None = None
        self._is_dated = False
        """Whether the line above was the date of a row, or stated that it has none."""
        self._row: _OpenRow | None = None
        self._block: Block | None = None
        self._found = 0
        """Messages since the last total."""
        self._is_listing = False

    def messages(self) -> Iterator[ListedMessage]:
        for line in self._lines:
            self._number += 1
            if isinstance(line, LineError):
                self._note(Trouble(str(line), line.found))
                if line.is_last:
                    break
                continue
            yield from self._next(line)
        yield from self._ended()
        if self._heading is not None:
            self._end_heading(None)
        for number, line in self._stacked:
            self._note(Trouble("this line is not understood", line, KNOWN), number=number)
        if not self._is_listing and not self._problems.errors:
            self._note(Trouble("there is no listing in it", "", KNOWN), number=0)
        self._problems.check("the listing", _REMEDY)

    def _next(self, line: str) -> Iterator[ListedMessage]:
        """Yield the messages that a line completes; the line itself is kept, or reported as a problem."""
        if self._block is not None and self._continue_block(line):
            return
        if not line or line.isspace():
            if self._row is None or not self._row.goes_on:
                yield from self._ended()
            return
        if self._row is not None and self._continue_row(line):
            return
        yield from self._ended()
        total = _TOTAL.fullmatch(line)
        if total is not None:
            self._check_total(int(total[1]))
            return
        self._begin(line)

    def _begin(self, line: str) -> None:
        """Begin the heading, row or block whose first line this is."""
        if self._heading is not None:
            if is_lower_heading(line):
                return
            self._end_heading(line if is_rule(line) else None)
            if is_rule(line):
                return
        if is_start(line):
            self._is_listing = True
            self._block = Block(self._number, self._order, self._encoding, with_data=self._with_data)
        elif self._begins_block(line):
            self._is_listing = True
            self._block = Block(self._number, self._order, self._encoding, with_data=self._with_data)
            self._continue_block(line)
        elif is_heading(line):
            self._is_listing = True
            self._heading = line
        elif (found := find_id(line)) is not None and not _is_typed(line, found.start()):
            self._is_listing = True
            self._begin_row(line, found)
        elif is_stacked(line) and len(self._stacked) < _MOST_STACKED:
            self._stacked.append((self._number, line))
        elif not self._is_date(line) and not is_rule(line) and not _passed_over(line):
            self._note(Trouble("this line is not understood", line, KNOWN))

    def _begin_row(self, line: str, found: re.Match[str]) -> None:
        values, troubles = read_row(line, found, self._columns, self._order)
        for trouble in troubles:
            self._note(trouble, path=values.get("mid"))
        day, self._day = self._day, None
        goes_on, self._is_dated = self._is_dated, False
        created = values.get("created")
        if day is not None and created is not None and not created.has_date:
            values["created"] = Moment(day.at_ns + created.at_ns)
        self._row = _OpenRow(values, is_broken=bool(troubles), goes_on=goes_on)

    def _continue_row(self, line: str) -> bool:
        """Return whether a line belongs to the row above it.

        It is indented, and the row has a date of its own above.
        """
        row = self._row
        assert row is not None
        if not row.goes_on or not line[0].isspace():
            return False
        named = split(line)
        if row.lines >= _MOST_CONTINUED or is_start(line) or (named and knows(named[0])):
            return False
        row.lines += 1
        key = named[0].lower() if named else ""
        if named and key in _LONG_FIELDS:
            self._set_long(row, *_LONG_FIELDS[key], named[1])
        elif not row.values.get("destination") and row.lines == 1 and not named:
            row.values["destination"] = unescaped(line.strip())
        else:
            name, text = named or (f"line {row.lines + 2}", line.strip())
            row.values["others"] = (*row.values.get("others", ()), (other_name(name), text))
        return True

    def _set_long(self, row: _OpenRow, field: str, read: Any, allowed: str, text: str) -> None:
        if not text:
            return
        try:
            row.values[field] = read(text, self._order)
        except ValueError:
            self._note(Trouble("this line is not understood", text, allowed), path=row.values.get("mid"))
            row.is_broken = True

    def _begins_block(self, line: str) -> bool:
        """Return whether a line is of a message in the extended form whose first line is missing."""
        if not line.lstrip().startswith("msg"):
            return False
        named = split(line)
        return named is not None and knows(named[0])

    def _continue_block(self, line: str) -> bool:
        """Return whether a line belongs to the message in the extended form that is being read."""
        block = self._block
        assert block is not None
        if not line or line.isspace() or is_start(line) or is_heading(line) or _TOTAL.fullmatch(line):
            return False
        named = split(line)
        if named is None:
            if find_id(line) is not None:
                return False
            block.is_broken = True
            self._note(Trouble("this line of a message is not understood", line, "name : value"), path=block.mid)
            return True
        for trouble in block.add(*named):
            self._note(trouble, path=block.mid)
        return True

    def _ended(self) -> Iterator[ListedMessage]:
        """Yield the message whose last line was read."""
        if self._block is not None:
            block, self._block = self._block, None
            for trouble in block.missing():
                self._note(trouble, path=block.mid, number=block.number)
            self._found += 1
            if not block.is_broken:
                yield block.message()
        if self._row is not None:
            row, self._row = self._row, None
            self._found += 1
            if not row.is_broken:
                yield ListedMessage(**row.values)

    def _end_heading(self, rule: str | None) -> None:
        assert self._heading is not None
        columns = columns_of(self._heading, [line for _, line in self._stacked], rule)
        if columns is None:
            allowed = "at least Message Id and State"
            self._note(Trouble("the heading lacks columns", self._heading, allowed), number=self._number - 1)
            columns = ListingColumns(STANDARD.fields)
        self._columns = columns
        self._heading = None
        self._stacked.clear()

    def _is_date(self, line: str) -> bool:
        """Return whether a line is the date of the row below it, which it is then kept for."""
        text = line.strip()
        if text == NO_DATE:
            self._is_dated = self._is_listing = True
            return True
        if len(text) > _LONGEST_DATE or ":" in text or not any(each.isdigit() for each in text):
            return False
        try:
            self._day = parse_moment(text, self._order)
        except ValueError:
            return False
        self._is_dated = self._is_listing = True
        return True

    def _check_total(self, announced: int) -> None:
        self._is_listing = True
        if announced != self._found:
            trouble = Trouble(
                "the listing is cut or was put together from parts", f"{self._found} messages", f"{announced} messages"
            )
            self._note(trouble)
        self._found = 0

    def _note(self, trouble: Trouble, *, path: object = None, number: int | None = None) -> None:
        line = self._number if number is None else number
        where = "" if path is None else f"message {path}"
        self._problems.add(line, trouble.message, trouble.found, trouble.allowed, path=where)
        if self._problems.is_full:
            self._problems.check("the listing", _REMEDY)


_LONG_FIELDS: Final = Block.of_the_long_form()


def _is_typed(line: str, place_of_id: int) -> bool:
    """Return whether a line is a typed command that contains an id, not a row."""
    return _ECHO.match(line, 0, place_of_id) is not None


def _passed_over(line: str) -> bool:
    return len(line) <= 1000 and (_ECHO.fullmatch(line) is not None or _OTHER_TOTAL.fullmatch(line) is not None)
