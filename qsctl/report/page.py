"""The content of a report page on any subject; `_html.py` renders it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qsctl.report._charts import Picture


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page: headings, rows of text, and the indexes of the columns that hold numbers."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A report page: the verdict, the charts and tables, then the facts, the configuration and the command to reproduce
    it.
    """

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
