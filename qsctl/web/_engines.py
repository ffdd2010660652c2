"""The view "Engine": the graph of a site's threads and routes, with the messages that wait at each thread.

Decides the position of a thread in the drawing: right of the threads that feed it; in a cycle, the order of the file
decides. The graph is that of a NetConfig; the waiting messages are those of the last poll of the engine's database.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from qsctl.cli.output.results import Row
from qsctl.netconfig.graph import SiteLink, links_of
from qsctl.netconfig.model import NetConfig
from qsctl.web._context import PageView, WebContext
from qsctl.web._parameters import text_of

THREADS_MAX: Final = 150
"""Largest number of threads drawn; a filter selects others."""


def view(context: WebContext) -> PageView | None:
    """Return the view if a NetConfig was given, else None."""
    return PageView("engine", "Engine") if context.netconfig is not None else None


def routes(context: WebContext) -> list[BaseRoute]:
    """Return the route of the view; none without a NetConfig."""
    path = context.netconfig
    if path is None:
        return []

    async def engine(request: Request) -> Response:
        wanted = text_of(request, "filter", 255)
        config = await to_thread.run_sync(_read, path)
        feed = next((each for each in context.feeds if each.name == "engine"), None)
        graph = graph_of(config, () if feed is None else feed.look.rows, wanted)
        return JSONResponse(
            {**graph, "has_depths": feed is not None, "error": "" if feed is None else feed.error, "title": str(path)}
        )

    return [Route("/api/engine", engine)]


def _read(path: Path) -> NetConfig:
    """Read the site from its file, which may have changed."""
    from qsctl.netconfig.read import read_netconfig

    return read_netconfig(path).config


def graph_of(config: NetConfig, rows: Sequence[Row], wanted: str) -> dict[str, Any]:
    """Return the threads with their positions and depths, and the links between them.

    Args:
        config: the site.
        rows: the engine's queues, named `THREAD STATE QUEUE`, with their depths.
        wanted: part of the names of the threads to draw, with their neighbours; empty: all.
    """
    links = links_of(config)
    names = [each.name for each in config.threads]
    process = {each.name: each.process for each in config.threads}
    if wanted:
        chosen = {name for name in names if wanted.casefold() in name.casefold()}
        near = {end for link in links if chosen & {link.source, link.destination} for end in link[:2]}
        names = [name for name in names if name in chosen | near]
    drawn = names[:THREADS_MAX]
    kept = set(drawn)
    links = [link for link in links if link.source in kept and link.destination in kept]
    column = columns_of(drawn, links)
    depths: dict[str, int] = {}
    for row in rows:
        thread, depth = str(row["name"]).partition(" ")[0], row.get("depth")
        if isinstance(depth, int):
            depths[thread] = depths.get(thread, 0) + depth
    filled: dict[int, int] = {}
    threads = []
    for name in drawn:
        place = filled.get(column[name], 0)
        filled[column[name]] = place + 1
        threads.append(
            {
                "name": name,
                "process": process[name],
                "column": column[name],
                "place": place,
                "depth": depths.get(name, 0),
            }
        )
    unique = dict.fromkeys((link.source, link.destination, str(link.kind)) for link in links)
    return {
        "threads": threads,
        "links": [{"source": source, "destination": end, "kind": kind} for source, end, kind in unique],
        "count": len(names),
        "elsewhere": sum(depth for name, depth in depths.items() if name not in kept),
    }


def columns_of(names: Sequence[str], links: Sequence[SiteLink]) -> dict[str, int]:
    """Return the column of each thread: one more than the rightmost thread that feeds it, ignoring links that close
    cycles.
    """
    following: dict[str, list[str]] = {}
    for link in links:
        if link.source != link.destination:
            following.setdefault(link.source, []).append(link.destination)
    state: dict[str, int] = {}
    order: list[str] = []
    forward: list[tuple[str, str]] = []
    for root in names:
        if root in state:
            continue
        state[root] = 1
        work = [(root, iter(following.get(root, ())))]
        while work:
            name, rest = work[-1]
            after = next(rest, None)
            if after is None:
                work.pop()
                state[name] = 2
                order.append(name)
            elif state.get(after) != 1:  # a thread in progress is upstream: the link leads back
                forward.append((name, after))
                if after not in state:
                    state[after] = 1
                    work.append((after, iter(following.get(after, ()))))
    column = dict.fromkeys(names, 0)
    leading: dict[str, list[str]] = {}
    for source, end in forward:
        leading.setdefault(source, []).append(end)
    for name in reversed(order):
        for end in leading.get(name, ()):
            column[end] = max(column[end], column[name] + 1)
    return column
