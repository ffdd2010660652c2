"""One row of a listing to the fields of a message: every value that is not understood is named.

Decides: which value belongs to which column. The message id in its brackets is the anchor: a date of any length
precedes it. Behind it there are words; where there are fewer than columns, their places decide, and without places the
last columns are the empty ones, as a message that was not routed yet has no destination.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, Final

from qsctl.dumps._columns import CREATED, DESTINATION, MID, SOURCE, ListingColumns
from qsctl.dumps._fields import unescaped
from qsctl.dumps._values import ALLOWED_MOMENT, READERS, Trouble, message_id, read_value, whole_number
from qsctl.dumps.moments import DateOrder, parse_moment

_BRACKETED: Final = re.compile(r"\[\s*\d{1,18}\.\d{1,18}\.\d{1,18}\s*\]")
_BARE: Final = re.compile(r"(?<!\S)\d{1,18}\.\d{1,18}\.\d{1,18}(?!\S)")
_WORD: Final = re.compile(r"\S+")
_MAY_BE_EMPTY: Final = frozenset({SOURCE, DESTINATION, "owner", "process"})
_EMPTY: Final = frozenset({"-", "{}", "(none)"})
LONGEST_ROW: Final = 10_000

_Places = list[tuple[int, str]]


def find_id(line: str) -> re.Match[str] | None:
    """Return the message id in a line; without brackets the last thing that looks like one, for a date may, too."""
    if len(line) > LONGEST_ROW:
        return None
    found = _BRACKETED.search(line)
    if found is not None or "." not in line:
        return found
    bare = list(_BARE.finditer(line))
    return bare[-1] if bare and bare[-1].end() < len(line) else None


def read_row(
    line: str, found: re.Match[str], columns: ListingColumns, order: DateOrder
) -> tuple[dict[str, Any], list[Trouble]]:
    """Read a row.

    Args:
        line: the row.
        found: its message id.
        columns: of the listing.
        order: of dates in numbers.

    Returns:
        The fields of a `ListedMessage` with `others`, and what is wrong.
    """
    at = columns.fields.index(MID)
    texts: dict[str, str] = {}
    before, behind = columns.fields[:at], columns.fields[at + 1 :]
    starts = columns.starts
    left = line[: found.start()]
    if len(before) == 1:
        texts[before[0]] = left.strip()
    elif not _assign(_words(left, 0), before, starts[:at], texts):
        return {}, [Trouble("there are more values than columns before the message id", left.strip())]
    words = _words(line, found.end())
    if not _assign(words, behind, starts[at + 1 :], texts):
        expected = f"{len(behind)} values behind the message id"
        return {}, [Trouble("there are more values than columns", line[found.end() :].strip(), expected)]
    missing = [name for name in behind if not texts.get(name) and name not in _MAY_BE_EMPTY and name[0] != "="]
    if missing:
        heading = READERS[missing[0]][0] if missing[0] in READERS else missing[0]
        return {}, [Trouble(f"the row is cut: it has no {heading}", line, "the whole row")]
    return _values(texts, found[0], order)


def _words(line: str, start: int) -> _Places:
    return [(word.start(), word[0]) for word in _WORD.finditer(line, start)]


def _assign(words: _Places, fields: Sequence[str], starts: Sequence[int], texts: dict[str, str]) -> bool:
    """Give each word to its column; False where there are too many.

    By place where that gives every column what it needs: a date may be two words where a name is missing. Otherwise,
    as in a row that a long id moved to the right, by count.
    """
    is_plain = len(words) == len(fields) and not any(_has_words(name) for name in fields)
    if starts and not is_plain:
        placed: dict[str, list[str]] = {}
        for position, word in words:
            column = max((index for index, start in enumerate(starts) if start <= position), default=0)
            placed.setdefault(fields[column], []).append(word)
        if _needed(fields) <= set(placed) and all(len(each) == 1 or _has_words(name) for name, each in placed.items()):
            texts.update((name, " ".join(each)) for name, each in placed.items())
            return True
    if len(words) > len(fields):
        return False
    texts.update(zip(fields, (word for _, word in words), strict=False))
    return True


def _has_words(name: str) -> bool:
    """Return whether a value may be several words: a date, or what is not known here."""
    return name == CREATED or name[0] == "="


def _needed(fields: Sequence[str]) -> set[str]:
    return {name for name in fields if name not in _MAY_BE_EMPTY and name[0] != "="}


def _values(texts: dict[str, str], mid: str, order: DateOrder) -> tuple[dict[str, Any], list[Trouble]]:
    troubles: list[Trouble] = []
    try:
        values: dict[str, Any] = {"mid": message_id(mid.strip("[] "))}
    except ValueError:
        return {}, [Trouble("this is no message id", mid, "[x.y.z]")]
    others: list[tuple[str, str]] = []
    for name, text in texts.items():
        if text in _EMPTY:
            continue
        if name in READERS:
            try:
                values[name] = read_value(name, text)
            except ValueError:
                heading, _, allowed = READERS[name]
                troubles.append(Trouble(f"column {heading} is not understood", text, allowed))
        elif name == CREATED:
            try:
                values.update({name: parse_moment(text, order)} if text else {})
            except ValueError as error:
                troubles.append(Trouble(f"column Created is not understood: {error}", text, ALLOWED_MOMENT))
        elif name == "retries":
            try:
                values[name] = whole_number(text)
            except ValueError:
                troubles.append(Trouble("column Retries is not understood", text, "a whole number"))
        elif name[0] == "=":
            if text:
                others.append((name[1:], text))
        else:
            values[name] = sys.intern(unescaped(text))  # a listing has few threads and many messages
    if "state" not in values and not troubles:
        troubles.append(Trouble("the row has no state", texts.get("state", ""), READERS["state"][2]))
    if others:
        values["others"] = tuple(others)
    return values, troubles
