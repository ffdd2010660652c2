"""The view "Live": the rows of each source as they change, filtered, sorted and paged here.

Decides: what one page has. A service may have thousands of queues, a browser shows some tens: a stream sends the rows
of its page alone.
"""

from __future__ import annotations

import fnmatch
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from qsctl.cli.output.results import Row
from qsctl.errors import NotFound, UsageError
from qsctl.web.context import PageView, WebContext
from qsctl.web.events import EventStream
from qsctl.web.feed import PolledSource
from qsctl.web.history import row_key
from qsctl.web.parameters import text_of, whole_of

ROWS_MAX: Final = 200
"""Rows of a page."""
SPARK_POINTS: Final = 60
"""Points of the line beside a row."""
_FILTER_CHARACTERS: Final = 255
_ASTERISKS_MAX: Final = 8
"""In a pattern: each multiplies the time that a name costs."""


@dataclass(frozen=True, slots=True)
class RowPage:
    """The part of the rows that a browser asks for: filter, order, place."""

    filter: str
    sort: str
    is_descending: bool
    first: int
    count: int

    def of(self, rows: Sequence[Row]) -> tuple[list[Row], int]:
        """Return the rows of the page, and how many fit the filter."""
        fitting = [row for row in rows if _fits(str(row["name"]), self.filter)]
        fitting.sort(key=lambda row: str(row["name"]).casefold())
        if self.sort == "name":
            if self.is_descending:
                fitting.reverse()
        else:
            fitting.sort(key=lambda row: _order(row.get(self.sort)), reverse=self.is_descending)
        first = min(self.first, max(0, (len(fitting) - 1) // self.count * self.count))
        return fitting[first : first + self.count], len(fitting)


def _fits(name: str, wanted: str) -> bool:
    if not wanted:
        return True
    if any(character in wanted for character in "*?["):
        return fnmatch.fnmatchcase(name.casefold(), wanted.casefold())
    return wanted.casefold() in name.casefold()


def _order(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 1, value, ""
    return 0, 0.0, "" if value is None else str(value)


def view(context: WebContext) -> PageView | None:
    """Return the view where something is looked at."""
    return PageView("live", "Live") if context.feeds else None


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the routes: the sources, and the stream of one."""

    async def stream(request: Request) -> Response:
        feed = feed_of(context, request)
        page = page_of(request)
        return EventStream(_events(feed, page), context)

    return [Route("/api/live", stream)]


def feed_of(context: WebContext, request: Request) -> PolledSource:
    """Return the source that a request names, or the first.

    Raises:
        NotFound: there is no such source.
    """
    name = text_of(request, "source", 64)
    for feed in context.feeds:
        if not name or feed.name == name:
            return feed
    raise NotFound(f"there is no source {name!r}", remedy="Go back to the list.")


def page_of(request: Request) -> RowPage:
    """Return the page that a request asks for.

    Raises:
        UsageError: a parameter is not what it must be.
    """
    wanted = text_of(request, "filter", _FILTER_CHARACTERS)
    if wanted.count("*") > _ASTERISKS_MAX:
        raise UsageError(f"the filter has more than {_ASTERISKS_MAX} asterisks", remedy="Write a shorter one.")
    return RowPage(
        wanted,
        text_of(request, "sort", 64) or "depth",
        text_of(request, "descending", 1) != "0",
        whole_of(request, "first", 0, 10**7),
        whole_of(request, "count", 50, ROWS_MAX, least=1),
    )


async def _events(feed: PolledSource, page: RowPage) -> AsyncIterator[Any]:
    number = -1
    while True:
        if feed.number > number or await feed.news(number):
            number = feed.number
            yield document_of(feed, page)
        else:
            yield None


def document_of(feed: PolledSource, page: RowPage) -> dict[str, Any]:
    """Return what a page shows of a source now."""
    look = feed.look
    rows, count = page.of(look.rows)
    field = look.figures[0].field if look.figures else "depth"
    line = "depth" if any(figure.field == "depth" for figure in look.figures) else field
    shown = []
    for row in rows:
        ring = feed.history.of(row_key(row))
        shown.append({**row, "history": ring.last(line, SPARK_POINTS) if ring is not None else []})
    return {
        "source": feed.name,
        "title": feed.title,
        "heading": look.heading,
        "figures": [{"field": each.field, "heading": each.heading, "is_text": each.is_text} for each in look.figures],
        "line": line,
        "rows": shown,
        "count": count,
        "all_count": len(look.rows),
        "first": min(page.first, max(0, (count - 1) // page.count * page.count)),
        "summary": look.summary,
        "note": look.note,
        "error": feed.error,
        "seen_at_s": feed.seen_at_s,
        "interval_s": feed.interval_s,
    }
