"""The content of a report's page, on any subject; `html.py` makes the file of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qsctl.report.charts import Picture


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table: headings, rows of text, and which columns are numbers."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A report: the verdict first, then what it rests on, then what was asked and how to ask it again."""

    title: str
    subtitle: str
    good: bool
    verdict: Sequence[str]
    pictures: Sequence[Picture]
    tables: Sequence[PageTable]
    facts: Mapping[str, str]
    reproduce: str
    configuration: str
    notes: Sequence[str] = ()
