"""The writer of listings, in the layouts that operators and their scripts expect.

Decides: layouts. Short: a heading of six lines, a row a message, two lines at the end. Long: a heading of eight lines,
eight lines a message with the columns in the same places. Extended: a line a field. What is printed is read back the
same (`qsctl.dumps.read`), as far as the form shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from qsctl.dumps._extended_block import LONG_NAMES
from qsctl.dumps._fields import DATA, FIELDS, NAME_WIDTH, escaped, field_line
from qsctl.dumps.model import ListedMessage, ListingForm
from qsctl.dumps.payload_text import payload_text
from qsctl.dumps.read import NO_DATE

_TIME, _ID, _NAME = 8, 15, 15
UNSTATED: Final = "-"
"""In the place of a value that is not known."""
_LEFT: Final = _TIME + 1 + _ID

_SHORT_HEADING: Final = (
    f"{'':{_LEFT}}C",
    f"{'':{_LEFT}}l T",
    f"{'':{_LEFT}}a y F",
    f"{'':{_LEFT}}s p w",
    f"{'Created':<{_TIME}} {'Message Id':<{_ID}}s e d Prio  State Length {'Source':<{_NAME}} Dest",
    f"{'-' * _TIME} {'-' * (_ID - 1)} - - - ---- ------ ------ {'-' * _NAME} {'-' * _NAME}",
)
_LONG_HEADING: Final = (
    "",
    *_SHORT_HEADING[:4],
    f"{'Created':<{_TIME}} {'Message Id':<{_ID}}s e d Prio  State Length Source",
    f"{'':{_LEFT + 25}}Dest",
    f"{'-' * _TIME} {'-' * (_ID - 1)} - - - ---- ------ ------ {'-' * _NAME}",
)


def listing(messages: Iterable[ListedMessage], form: ListingForm, *, expanded: bool = False) -> Iterator[str]:
    """Yield the lines of a listing.

    Args:
        messages: in the order in which they are to be listed.
        form: how much of each.
        expanded: whether flags have their names beside them; extended form alone.
    """
    heading = {ListingForm.SHORT: _SHORT_HEADING, ListingForm.LONG: _LONG_HEADING, ListingForm.EXTENDED: ()}[form]
    yield from heading
    count = 0
    for message in messages:
        count += 1
        if form is ListingForm.SHORT:
            yield short_row(message)
        elif form is ListingForm.LONG:
            yield from _long_lines(message)
        else:
            yield from _extended_lines(message, expanded=expanded)
    if form is not ListingForm.EXTENDED:
        yield ""
    yield f"Total: {count} message{'' if count == 1 else 's'}"


def short_row(message: ListedMessage) -> str:
    """Return the row of a message."""
    return f"{_row(message)} {_cell(message.source) or UNSTATED:<{_NAME}} {_cell(message.destination)}".rstrip()


def _cell(text: str) -> str:
    """Return a name as one word."""
    word = escaped(text).replace(" ", r"\x20")
    return rf"{word[:-1]}\x3a" if word.endswith(":") else word  # with it, a line would be a name without a value


def _row(message: ListedMessage) -> str:
    created = UNSTATED if message.created is None else message.created.time_of_day
    forward = UNSTATED if message.forward is None else "NY"[message.forward]
    priority = UNSTATED if message.priority is None else str(message.priority)
    size = UNSTATED if message.size_bytes is None else str(message.size_bytes)
    letters = f"{message.message_class or UNSTATED} {message.type or UNSTATED} {forward}"
    mid = str(message.mid)
    # What is too long for its column moves the rest of the row, which is then read by words.
    gap = " " if len(mid) >= _ID else ""
    return f"{created:<{_TIME}} {mid:<{_ID}}{gap}{letters} {priority:>4} {message.state:>6} {size:>6}"


def _long_lines(message: ListedMessage) -> Iterator[str]:
    day = message.created.day if message.created is not None else None
    yield NO_DATE if day is None else f"{day:%a %b %e %Y}"
    yield f"{_row(message)} {_cell(message.source) or UNSTATED}"
    yield f"{'':{_LEFT + 25}}{_cell(message.destination)}".rstrip()
    for name, field in LONG_NAMES.items():
        value = getattr(message, field)
        yield f"  {name:<11}: {escaped(str(value)) if value is not None else ''}".rstrip()
    yield ""


def _extended_lines(message: ListedMessage, *, expanded: bool) -> Iterator[str]:
    yield "msg:"
    for field in FIELDS:
        if field.field == "size_bytes" and message.data is not None:
            continue
        line = field_line(field, message, expanded=expanded)
        if line is not None:
            yield line
    for name, text in message.others:
        yield f"    {name:<{NAME_WIDTH}}: {escaped(text)}".rstrip()
    if message.data is not None:
        yield f"    {DATA:<{NAME_WIDTH}}: {payload_text(message.data)}"
    yield ""
