"""The page of one queue: its history, its samples, its consumers, and its dead letters by reason.

Decides how much is read at a time: a page of samples after a position, and a bounded number of dead letters. Samples
are shown as the rows of `qsctl get messages`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from qsctl.cli.administer.get_results import Messages
from qsctl.cli.administer.snippets import checked_selector
from qsctl.cli.output.results import Row
from qsctl.errors import NotFound
from qsctl.resource import parse_resource
from qsctl.web._context import PageView, WebContext
from qsctl.web._desk import ServiceDesk, ask
from qsctl.web._events import EventStream
from qsctl.web._feed import PolledSource
from qsctl.web._history import POINTS_MAX, SERIES, row_key
from qsctl.web._parameters import text_of, whole_of
from qsctl.web._payload_view import payload_view

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

SAMPLES_MAX: Final = 100
"""Largest number of samples of a page."""
COUNTED_MAX: Final = 2_000
"""Largest number of dead letters that are read to count them by reason."""
_READ_AT_ONCE: Final = 500
_NAME_CHARACTERS: Final = 1_024
_SELECTOR_CHARACTERS: Final = 4_096
_SAMPLE_FIELDS: Final = (
    "position", "status", "identity", "size_bytes", "enqueued_at", "attempts", "redelivered", "dead_letter_from",
    "dead_letter_reason", "service",
)  # fmt: skip


def view(_context: WebContext) -> PageView | None:
    """Return None: the page of a queue is reached from the view "Live", so it has no view of its own."""
    return None


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the routes of the page of a queue; none without a service."""
    desk = context.desk
    feed = next((each for each in context.feeds if each.name == "service"), None)
    if desk is None or feed is None:
        return []

    async def stream(request: Request) -> Response:
        return EventStream(_events(feed, text_of(request, "name", _NAME_CHARACTERS)), context)

    async def consumers(request: Request) -> Response:
        name = text_of(request, "name", _NAME_CHARACTERS)
        async with feed.asking:
            look = await to_thread.run_sync(feed.source.look, name)
        figures = [{"field": each.field, "heading": each.heading, "is_text": each.is_text} for each in look.figures]
        return JSONResponse(
            {"figures": figures, "rows": [dict(row) for row in look.rows], "summary": look.summary, "note": look.note}
        )

    async def samples(request: Request) -> Response:
        return JSONResponse(await _samples(request, feed, desk, context))

    async def dead(request: Request) -> Response:
        name = text_of(request, "name", _NAME_CHARACTERS)
        return JSONResponse(await ask(feed, desk, lambda administration: dead_letters(administration, name)))

    return [
        Route("/api/queue", stream),
        Route("/api/queue/consumers", consumers),
        Route("/api/queue/samples", samples),
        Route("/api/queue/dead", dead),
    ]


async def _events(feed: PolledSource, name: str) -> AsyncIterator[Any]:
    number = -1
    while True:
        if feed.number > number or await feed.news(number):
            number = feed.number
            yield queue_document(feed, name)
        else:
            yield None


def queue_document(feed: PolledSource, name: str) -> dict[str, Any]:
    """Return the rows of a queue, one for each service that hosts it, with their histories."""
    rows: list[Row] = [row for row in feed.look.rows if row["name"] == name]
    histories = [feed.history.of(row_key(row)) for row in rows]
    return {
        "name": name,
        "rows": rows,
        "figures": [
            {"field": each.field, "heading": each.heading, "is_text": each.is_text} for each in feed.look.figures
        ],
        "histories": [
            {field: [] if ring is None else ring.last(field, POINTS_MAX) for field in SERIES} for ring in histories
        ],
        "interval_s": feed.interval_s,
        "error": feed.error,
        "seen_at_s": feed.seen_at_s,
    }


async def _samples(request: Request, feed: PolledSource, desk: ServiceDesk, context: WebContext) -> dict[str, Any]:
    from qsctl.cli.samples.json_form import reader_of
    from qsctl.identity import incarnation_from_text, incarnation_text

    name = text_of(request, "name", _NAME_CHARACTERS)
    selector = checked_selector(text_of(request, "select", _SELECTOR_CHARACTERS))
    count = whole_of(request, "count", 20, SAMPLES_MAX, least=1)
    after = whole_of(request, "after", 0, 2**62)
    incarnation = incarnation_from_text(text_of(request, "incarnation", 64))

    def found(administration: Administration) -> dict[str, Any]:
        resource = administration.queue_named(name)
        reader = reader_of(administration, resource, context.types)
        read = administration.messages(resource, selector, count, after, incarnation)
        read.sort(key=lambda each: each.body.position)
        rows = []
        for row in Messages(tuple(read[:count]), reader).rows():
            shown = payload_view(row)
            fields = {field: row[field] for field in _SAMPLE_FIELDS}
            rows.append({**fields, "payload": shown.text, "payload_kind": shown.kind, "payload_is_cut": shown.is_cut})
        return {
            "rows": rows,
            "incarnation": incarnation_text(read[0].body.incarnation) if read else "",
            "may_be_more": len(rows) == count,
        }

    return await ask(feed, desk, found)


def dead_letters(administration: Administration, name: str) -> dict[str, Any]:
    """Return the numbers of dead letters in a dead-letter queue, by origin and reason.

    For another queue, return the names of the dead-letter queues of its subscriber instead.

    Args:
        administration: the service.
        name: name of the queue.
    """
    resource = administration.queue_named(name)
    queues = administration.hosted().queues
    own = next((each for each in queues if each.resource == str(resource.bare)), None)
    if own is None:
        raise NotFound(f"there is no queue {name}", remedy="It was deleted: go back to the list.")
    beside = [
        each.queue_name
        for each in queues
        if each.is_dead_letter and parse_resource(each.resource).parent == resource.parent
    ]
    if not own.is_dead_letter:
        return {"is_dead_letter": False, "beside": beside, "rows": [], "is_whole": True}
    counts: Counter[tuple[str, str]] = Counter()
    after = read_count = 0
    while read_count < COUNTED_MAX:
        part = administration.messages(resource, "", _READ_AT_ONCE, after)
        counts.update((each.body.dead_letter_from, each.body.dead_letter_reason) for each in part)
        read_count += len(part)
        if len(part) < _READ_AT_ONCE:
            break
        after = max(each.body.position for each in part)
    rows = [
        {"from": origin, "reason": reason, "count": count} for (origin, reason), count in sorted(counts.items())
    ]  # fmt: skip
    return {"is_dead_letter": True, "beside": [], "rows": rows, "is_whole": read_count < COUNTED_MAX}
