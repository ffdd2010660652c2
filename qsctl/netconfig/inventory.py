"""Tables of a site's inventory: its threads with their connections, and the uses of procedures and translations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qsctl.netconfig.graph import links_of
from qsctl.netconfig.model import NetConfig, NetProcedure


class ThreadRow(NamedTuple):
    """A thread and its connection."""

    thread: str
    process: str
    protocol: str
    host: str
    port: str
    server: bool | None
    started: bool
    logged: bool | None
    fed_by: int
    """Number of threads that feed it."""
    feeds: int
    """Number of threads that it feeds."""
    line: int


class UseRow(NamedTuple):
    """One use of a procedure or a translation."""

    name: str
    place: str
    """The stack of a thread (IN_DATA, OUT_DATA, IN_REPLY, OUT_REPLY) or part of a route detail (pre, translation,
    post).
    """
    thread: str
    transaction: str
    destination: str
    enabled: bool
    line: int


def thread_rows(config: NetConfig) -> list[ThreadRow]:
    """Return the threads of a site, in the order of its file."""
    links = links_of(config)
    rows = []
    for thread in config.threads:
        protocol = thread.protocol
        rows.append(
            ThreadRow(
                thread.name,
                thread.process,
                protocol.type,
                protocol.host,
                protocol.port,
                protocol.is_server,
                thread.is_started,
                thread.is_logged,
                len({each.source for each in links if each.destination == thread.name}),
                len({each.destination for each in links if each.source == thread.name}),
                thread.line,
            )
        )
    return rows


def use_rows(config: NetConfig) -> Iterator[UseRow]:
    """Yield every use of a procedure or translation, disabled ones included, in the order of the file."""
    for thread in config.threads:
        for place, stack in thread.stacks.items():
            for each in stack:
                yield UseRow(each.name, place.value, thread.name, "", "", each.is_enabled, each.line or thread.line)
        for route in (*thread.routes, *thread.reply_routes):
            for detail in route.details:
                led = " ".join(each.name for each in detail.destinations)
                names: list[tuple[str, NetProcedure]] = [
                    *(("pre", each) for each in detail.pre),
                    *(("translation", NetProcedure(each, detail.line)) for each in detail.translations),
                    *(("post", each) for each in detail.post),
                ]
                for where, each in names:
                    enabled = each.is_enabled and detail.is_enabled
                    yield UseRow(each.name, where, thread.name, route.transaction_id, led, enabled, each.line)
