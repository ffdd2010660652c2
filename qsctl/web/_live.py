"""The view "Live": the rows of each source as they change, filtered, sorted and divided into pages by the server.

A service may have thousands of queues, of which a browser shows some tens; a stream sends only the rows of its page.
"""

from __future__ import annotations

import fnmatch
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from qsctl.cli.output.results import Row
from qsctl.cli.top.look import Look
from qsctl.errors import NotFound, UsageError
from qsctl.instant import SECOND_NS
from qsctl.web._context import PageView, WebContext
from qsctl.web._events import EventStream
from qsctl.web._feed import PolledSource
from qsctl.web._history import SERIES, row_key
from qsctl.web._parameters import text_of, whole_of

if TYPE_CHECKING:
    from qsctl.cli.top.recorded import RunSource

ROWS_MAX: Final = 200
"""Largest number of rows of a page."""
SPARK_POINTS: Final = 60
"""Number of points of the small chart in a row."""
_FILTER_CHARACTERS: Final = 255
_ASTERISKS_MAX: Final = 8
"""Largest number of asterisks in a pattern, since each multiplies the time of matching a name."""


@dataclass(frozen=True, slots=True)
class RowPage:
    """The part of the rows that a browser requests: filter, order, and page."""

    filter: str
    sort: str
    is_descending: bool
    first: int
    count: int

    def of(self, rows: Sequence[Row]) -> tuple[list[Row], int]:
        """Return the rows of the page, and the number of rows that match the filter."""
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
    """Return the view if the server has a source or a run, else None."""
    return PageView("live", "Live") if context.feeds or context.run is not None else None


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the routes: the event stream of a source, and the state of a run at an instant."""

    async def stream(request: Request) -> Response:
        feed = feed_of(context, request)
        page = page_of(request)
        return EventStream(_events(feed, page), context)

    async def run(request: Request) -> Response:
        source = context.run
        if source is None:
            raise NotFound("no run is looked at", remedy="Start `qsctl web` with --run.")
        at_ns = whole_of(request, "at", 0, source.clock.horizon_ns)
        return JSONResponse(run_document(source, page_of(request), at_ns))

    return [Route("/api/live", stream), Route("/api/run", run)]


def feed_of(context: WebContext, request: Request) -> PolledSource:
    """Return the source that a request names, or the first source if it names none.

    Raises:
        NotFound: no source has this name.
    """
    name = text_of(request, "source", 64)
    for feed in context.feeds:
        if not name or feed.name == name:
            return feed
    raise NotFound(f"there is no source {name!r}", remedy="Go back to the list.")


def page_of(request: Request) -> RowPage:
    """Parse filter, order and page from the parameters of a request.

    Raises:
        UsageError: a parameter is invalid.
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
    """Return the document of one page of a source's current rows."""
    look = feed.look

    def points(row: Row, line: str) -> Sequence[float | None]:
        ring = feed.history.of(row_key(row))
        return ring.last(line, SPARK_POINTS) if ring is not None else ()

    return {
        "source": feed.name,
        "title": feed.title,
        **_shown(look, page, points),
        "error": feed.error,
        "seen_at_s": feed.seen_at_s,
        "span_s": feed.interval_s * SPARK_POINTS,
    }


def run_document(source: RunSource, page: RowPage, at_ns: int) -> dict[str, Any]:
    """Return the document of one page of a run's rows at an instant."""
    return {
        "source": "run",
        "title": "",
        **_shown(source.at(at_ns), page, lambda row, _line: source.depths(str(row["name"]), at_ns, SPARK_POINTS)),
        "error": "",
        "seen_at_s": 0,
        "span_s": source.bin_ns * SPARK_POINTS / SECOND_NS,
    }


def _shown(look: Look, page: RowPage, points: Callable[[Row, str], Sequence[float | None]]) -> dict[str, Any]:
    rows, count = page.of(look.rows)
    fields = [figure.field for figure in look.figures]
    line = next((field for field in ("depth", *SERIES) if field in fields), "")
    return {
        "heading": look.heading,
        "figures": [{"field": each.field, "heading": each.heading, "is_text": each.is_text} for each in look.figures],
        "line": line,
        "rows": [{**row, "history": points(row, line)} for row in rows],
        "count": count,
        "all_count": len(look.rows),
        "first": min(page.first, max(0, (count - 1) // page.count * page.count)),
        "summary": look.summary,
        "note": look.note,
    }
