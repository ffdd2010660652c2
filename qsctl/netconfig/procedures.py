"""Durations of procedures and translations by name, from a table that the site's operator writes.

Decides the form of the table: CSV with a heading: `name` and `takes` (a duration), optionally `spread` (constant,
exponential), `does` (drop, split, reroute, send, over, error), `every`, `results`, `to` and `transaction`, with the
meanings of a scenario. Names may contain the wildcards `*` and `?`; the first row whose name matches applies.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from qsctl.config.problems import Problem, Severity, did_you_mean, shown
from qsctl.config.values import DURATION
from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.netconfig.text import MOST_PROBLEMS, SiteFileError, read_bytes, text_of

COLUMNS: Final = ("name", "takes", "spread", "does", "every", "results", "to", "transaction")
SPREADS: Final = ("constant", "exponential")
DOES: Final = ("pass", "drop", "split", "reroute", "send", "over", "error")


@dataclass(frozen=True, slots=True)
class ProcedureRow:
    """A row of the table: the duration and effect of the procedures whose names match."""

    name: str
    takes_ns: Nanoseconds
    spread: str = "constant"
    does: str = "pass"
    every: int = 1
    results: int = 2
    to: str = ""
    transaction: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ProcedureTable:
    """The rows of a table of procedures, in order."""

    rows: tuple[ProcedureRow, ...] = ()

    def row(self, name: str) -> ProcedureRow | None:
        """Return the first row whose name matches; None if none does."""
        return next((each for each in self.rows if fnmatchcase(name, each.name)), None)


def read_procedures(path: Path) -> ProcedureTable:
    """Read the table of a file.

    Raises:
        NotFound: the file does not exist.
        SiteFileError: rows cannot be parsed; it lists all of them.
    """
    return parse_procedures(read_bytes(path), str(path))


def parse_procedures(data: bytes, name: str) -> ProcedureTable:
    """Parse the octets of a table; `name` is the file's name in error messages.

    Raises:
        SiteFileError: rows cannot be parsed; it lists all of them.
    """
    text, problems = text_of(data, name)
    rows: list[ProcedureRow] = []
    reader = csv.reader(io.StringIO(text, newline=""))
    heading: Sequence[str] | None = None
    try:
        for cells in reader:
            if not any(cells) or cells[0].lstrip().startswith("#"):
                continue
            if heading is None:
                heading = [each.strip().lower() for each in cells]
                problems += _of_heading(name, reader.line_num, heading)
                if len(problems) >= MOST_PROBLEMS:
                    break
                continue
            given = dict(zip(heading, (each.strip() for each in cells), strict=False))
            row, wrong = _row(name, reader.line_num, given)
            problems += wrong
            if row is not None:
                rows.append(row)
            if len(problems) >= MOST_PROBLEMS:
                break
    except csv.Error as error:
        problems.append(Problem(Severity.ERROR, name, reader.line_num, "", f"this is no CSV: {error}"))
    if heading is None:
        problems.append(Problem(Severity.ERROR, name, 0, "", "the table is empty", "", f"a heading: {_heading_text()}"))
    if any(each.severity is Severity.ERROR for each in problems):
        raise SiteFileError(
            "the table of procedures", problems, f"Write a heading, {_heading_text()}, and rows below it."
        )
    return ProcedureTable(tuple(rows))


def _heading_text() -> str:
    return ",".join(COLUMNS)


def _of_heading(name: str, line: int, heading: Sequence[str]) -> list[Problem]:
    shown_heading = shown(",".join(heading))
    found = [
        Problem(Severity.ERROR, name, line, "", f"the heading has no column {each}", shown_heading, _heading_text())
        for each in ("name", "takes")
        if each not in heading
    ]
    for unknown in [each for each in heading if each not in COLUMNS][:MOST_PROBLEMS]:
        hint = did_you_mean(unknown, COLUMNS)
        found.append(
            Problem(Severity.ERROR, name, line, "", "this column is not known", shown(unknown), _heading_text(), hint)
        )
    return found


def _row(name: str, line: int, given: dict[str, str]) -> tuple[ProcedureRow | None, list[Problem]]:
    wrong: list[Problem] = []

    def choice(column: str, allowed: Sequence[str]) -> str:
        text = given.get(column, "").lower() or allowed[0]
        if text not in allowed:
            wrong.append(
                Problem(Severity.ERROR, name, line, "", f"{column} is not understood", shown(text), ", ".join(allowed))
            )
        return text

    def count(column: str, default: int) -> int:
        text = given.get(column, "")
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1_000_000 or len(text) > 7:
            wrong.append(
                Problem(Severity.ERROR, name, line, "", f"{column} is not understood", shown(text), "1 to 1,000,000")
            )
            return default
        return int(text)

    label = given.get("name", "")
    if not label:
        wrong.append(Problem(Severity.ERROR, name, line, "", "a row without a name", "", "a procedure or translation"))
    takes_ns = 0
    try:
        takes_ns = DURATION.parse(given.get("takes", "") or "0s")
    except InvalidInput:
        takes_ns = INFINITE_NS
    if takes_ns >= INFINITE_NS:
        allowed = "a duration, as in 5ms"
        wrong.append(
            Problem(Severity.ERROR, name, line, "", "takes is no duration", shown(given.get("takes", "")), allowed)
        )
    row = ProcedureRow(
        label, takes_ns, choice("spread", SPREADS), choice("does", DOES), count("every", 1), count("results", 2),
        given.get("to", ""), given.get("transaction", ""), line,
    )  # fmt: skip
    for does, column in (("reroute", "transaction"), ("send", "to")):
        if row.does == does and not getattr(row, column):
            wrong.append(
                Problem(Severity.ERROR, name, line, "", f"{does} without {column}", "", f"a value in {column}")
            )
    return (None if wrong else row), wrong
