"""The view "About": the server's address, counters of refused requests, and the list of the page's views."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from qsctl import __version__
from qsctl.web._context import STREAMS_MAX, PageView, WebContext

VIEW = PageView("about", "About")


def routes(context: WebContext, views: Sequence[PageView]) -> list[BaseRoute]:
    """Return the routes of the view.

    Args:
        context: the server's state, with the counters.
        views: the views of the page, in the order of its navigation.
    """

    async def about(_request: Request) -> Response:
        return JSONResponse(
            {
                "version": __version__,
                "allow_changes": context.allow_changes,
                "answered_count": context.answered_count,
                "stream_count": context.stream_count,
                "streams_max": STREAMS_MAX,
                "refused": dict(sorted(context.refused.items())),
                "sources": [{"name": feed.name, "title": feed.title, "error": feed.error} for feed in context.feeds],
            }
        )

    sources: list[dict[str, str | int]] = [{"name": feed.name, "title": feed.title} for feed in context.feeds]
    if context.run is not None:
        clock = context.run.clock
        sources.append({"name": "run", "title": context.run.title().split("   ")[1], "horizon_ns": clock.horizon_ns})

    async def named(_request: Request) -> Response:
        return JSONResponse(
            {
                "views": [{"name": each.name, "title": each.title} for each in (*views, VIEW)],
                "sources": sources,
                "allow_changes": context.allow_changes,
            }
        )

    return [Route("/api/about", about), Route("/api/views", named)]
