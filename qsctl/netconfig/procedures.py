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

from qsctl.declared.problems import ProblemList, did_you_mean
from qsctl.declared.values import DURATION
from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.netconfig._text import read_bytes, text_of

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
        InvalidFile: rows cannot be parsed; it lists all of them.
    """
    return parse_procedures(read_bytes(path), str(path))


def parse_procedures(data: bytes, name: str) -> ProcedureTable:
    """Parse the octets of a table; `name` is the file's name in error messages.

    Raises:
        InvalidFile: rows cannot be parsed; it lists all of them.
    """
    text, encoding_problems = text_of(data, name)
    problems = ProblemList(name)
    problems.extend(encoding_problems)
    rows: list[ProcedureRow] = []
    reader = csv.reader(io.StringIO(text, newline=""))
    heading: Sequence[str] | None = None
    try:
        for cells in reader:
            if problems.is_full:
                break
            if not any(cells) or cells[0].lstrip().startswith("#"):
                continue
            if heading is None:
                heading = [each.strip().lower() for each in cells]
                _check_heading(reader.line_num, heading, problems)
                continue
            given = dict(zip(heading, (each.strip() for each in cells), strict=False))
            rows.append(_row(reader.line_num, given, problems))
    except csv.Error as error:
        problems.add(reader.line_num, f"this is no CSV: {error}")
    if heading is None:
        problems.add(0, "the table is empty", "", f"a heading: {_heading_text()}")
    problems.check("the table of procedures", f"Write a heading, {_heading_text()}, and rows below it.")
    return ProcedureTable(tuple(rows))


def _heading_text() -> str:
    return ",".join(COLUMNS)


def _check_heading(line: int, heading: Sequence[str], problems: ProblemList) -> None:
    for each in ("name", "takes"):
        if each not in heading:
            problems.add(line, f"the heading has no column {each}", ",".join(heading), _heading_text())
    for unknown in heading:
        if problems.is_full:
            return
        if unknown not in COLUMNS:
            hint = did_you_mean(unknown, COLUMNS)
            problems.add(line, "this column is not known", unknown, _heading_text(), suggestion=hint)


def _row(line: int, given: dict[str, str], problems: ProblemList) -> ProcedureRow:
    def choice(column: str, allowed: Sequence[str]) -> str:
        text = given.get(column, "").lower() or allowed[0]
        if text not in allowed:
            problems.add(line, f"{column} is not understood", text, ", ".join(allowed))
        return text

    def count(column: str, default: int) -> int:
        text = given.get(column, "")
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1_000_000 or len(text) > 7:
            problems.add(line, f"{column} is not understood", text, "1 to 1,000,000")
            return default
        return int(text)

    label = given.get("name", "")
    if not label:
        problems.add(line, "a row without a name", "", "a procedure or translation")
    takes_ns = 0
    try:
        takes_ns = DURATION.parse(given.get("takes", "") or "0s")
    except InvalidInput:
        takes_ns = INFINITE_NS
    if takes_ns >= INFINITE_NS:
        problems.add(line, "takes is no duration", given.get("takes", ""), "a duration, as in 5ms")
    row = ProcedureRow(
        label, takes_ns, choice("spread", SPREADS), choice("does", DOES), count("every", 1), count("results", 2),
        given.get("to", ""), given.get("transaction", ""), line,
    )  # fmt: skip
    for does, column in (("reroute", "transaction"), ("send", "to")):
        if row.does == does and not getattr(row, column):
            problems.add(line, f"{does} without {column}", "", f"a value in {column}")
    return row
