"""The columns of a listing of rows, from its heading: which there are, in which order, and where each begins.

Decides: headings. The three columns of one letter have their names written downwards above it ("Class", "Type",
"Fwd"); copies of listings often lose the blanks that put those letters in their place, so that s, e and d alone are
known, too. An unknown heading keeps its column under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from qsctl.dumps._fields import other_name

CREATED, MID, SOURCE, DESTINATION = "created", "mid", "source", "destination"

_HEADINGS: Final = {
    "created": CREATED, "time": CREATED, "date": CREATED,
    "message id": MID, "messageid": MID, "msg id": MID, "mid": MID,
    "class": "message_class", "type": "type", "fwd": "forward", "forward": "forward",
    "prio": "priority", "pri": "priority", "priority": "priority",
    "state": "state", "length": "size_bytes", "len": "size_bytes", "size": "size_bytes",
    "source": SOURCE, "source conn": SOURCE, "src": SOURCE,
    "dest": DESTINATION, "destination": DESTINATION, "dest conn": DESTINATION,
    "owner": "owner", "process": "process", "retries": "retries",
}  # fmt: skip
_LETTERS: Final = ("message_class", "type", "forward")
_STACKED: Final = re.compile(r"\s*\S(?:\s+\S){0,2}\s*")
_RULE: Final = re.compile(r"[-─=]+")
_RULE_LINE: Final = re.compile(r"[-─=\s+|]*[-─=][-─=\s+|]*")
_GAP: Final = re.compile(r"\s{2,}|\t")
MOST_COLUMNS: Final = 40

_NAMES_MANY: Final = 3
"""Number of known headings that make a line a heading."""


class ListingColumns(NamedTuple):
    """In the order of the listing."""

    fields: tuple[str, ...]
    """Of `ListedMessage`, or `=HEADING` for one that is not known."""
    starts: tuple[int, ...] = ()
    """Offset of each column; empty: unknown."""


STANDARD: Final = ListingColumns(
    (CREATED, MID, "message_class", "type", "forward", "priority", "state", "size_bytes", SOURCE, DESTINATION)
)
"""Of rows without any heading, as `grep` leaves them."""


def is_stacked(line: str) -> bool:
    """Return whether a line may be part of the vertically written headings of the one-letter columns."""
    return len(line) < 200 and _STACKED.fullmatch(line) is not None and line.replace(" ", "").strip().isalpha()


def is_heading(line: str) -> bool:
    """Return whether a line names columns."""
    if "[" in line or ":" in line or len(line) > 1000:
        return False
    words = [word.lower() for word in line.split()]
    known = sum(word in _HEADINGS for word in words) + ("message id" in line.lower())
    return known >= _NAMES_MANY


def is_lower_heading(line: str) -> bool:
    """Return whether a line names the fields below a row: it is indented, and all its words are headings."""
    words = line.replace("/", " ").split()
    return line[:1].isspace() and 0 < len(words) <= 6 and all(word.lower() in _HEADINGS for word in words)


def is_rule(line: str) -> bool:
    """Return whether a line is the rule of dashes below a heading."""
    return len(line) <= 1000 and _RULE_LINE.fullmatch(line) is not None


def columns_of(heading: str, stacked: Sequence[str], rule: str | None) -> ListingColumns | None:
    """Return the columns that a heading names; None if it has no column of message ids.

    Args:
        heading: its last line.
        stacked: those above it.
        rule: the line below it; None where there is none.
    """
    if rule is not None:
        spans = [found.start() for found in _RULE.finditer(rule)][:MOST_COLUMNS]
        ends = [*spans[1:], max(len(heading), len(rule)) + 1]
        names = [heading[start:end].strip() for start, end in zip(spans, ends, strict=True)]
    else:
        spans = []
        names = [part for cell in _GAP.split(heading.strip()) for part in _names_in(cell)][:MOST_COLUMNS]
    fields: list[str] = []
    for at, name in enumerate(names):
        downwards = _downwards([*stacked, heading], spans[at]) if spans and len(name) == 1 else ""
        known = _HEADINGS.get(downwards) or _HEADINGS.get(" ".join(name.lower().split()))
        if known is None and len(name) == 1:
            known = next((letter for letter in _LETTERS if letter not in fields), None)
        if known is None or known in fields:
            known = f"={other_name(name or str(at + 1))}"
        fields.append(known)
    if MID not in fields or "state" not in fields:
        return None
    return ListingColumns(tuple(fields), tuple(spans))


def _names_in(cell: str) -> list[str]:
    """Return the headings in the text between two gaps; several headings may be separated by one blank only."""
    words = cell.split()
    names: list[str] = []
    at = 0
    while at < len(words):
        pair = " ".join(words[at : at + 2])
        names.append(pair if pair.lower() in _HEADINGS else words[at])
        at += len(names[-1].split())
    known = any(name.lower() in _HEADINGS or len(name) == 1 for name in names)
    return names if known else [" ".join(words)]


def _downwards(lines: Sequence[str], at: int) -> str:
    return "".join(line[at : at + 1] for line in lines).strip().lower()
