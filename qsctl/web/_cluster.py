"""The view "Cluster": the replicas of replicated queues as their services report them, and the services without a
reply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from qsctl.cli.administer.replication_results import Replications
from qsctl.web._context import PageView, WebContext
from qsctl.web._desk import ask

if TYPE_CHECKING:
    from qsctl.client.administration import Administration

ROWS_MAX = 1_000
"""Largest number of replicas shown."""


def view(context: WebContext) -> PageView | None:
    """Return the view if the service is reached over DDS, else None, since an embedded service has no cluster."""
    return PageView("cluster", "Cluster") if context.desk is not None and context.desk.is_remote else None


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the route of the view; none without a service."""
    desk = context.desk
    feed = next((each for each in context.feeds if each.name == "service"), None)
    if desk is None or feed is None:
        return []

    async def cluster(_request: Request) -> Response:
        return JSONResponse(await ask(feed, desk, replicas))

    return [Route("/api/cluster", cluster)]


def replicas(administration: Administration) -> dict[str, Any]:
    """Return the rows of `qsctl get replication`, with the help of their fields."""
    administration.tolerate_silence()
    found = Replications(tuple(administration.statuses()), administration.silent)
    rows = found.rows()
    return {
        "rows": [dict(row) for row in rows[:ROWS_MAX]],
        "count": len(rows),
        "help": dict(found.field_help),
    }
