"""The graph of a site's threads, whose edges are routes and connections from one thread to another.

Decides which edges exist. A thread that works as inbound routes the messages that are sent to it. A client of a port of
this host feeds the thread that serves the port, and a thread that writes files feeds the thread that reads their
folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from qsctl.netconfig.model import NetConfig, NetThread

_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1", "localhost.localdomain"})


class LinkKind(StrEnum):
    """The means by which one thread feeds another."""

    ROUTE = "route"
    PORT = "port"
    """A connection to a port of this host."""
    FOLDER = "folder"
    """Files in a folder."""


class SiteLink(NamedTuple):
    """An edge of the graph: one thread feeds another."""

    source: str
    destination: str
    kind: LinkKind
    line: int
    """Line of the destination in a route, or of the thread."""
    transaction_id: str = ""


def links_of(config: NetConfig) -> list[SiteLink]:
    """Return the edges of a site in the order of its threads; a route has one for each of its destinations."""
    found = [link for thread in config.threads for link in _routes_of(thread)]
    return [*found, *_connections_of(config)]


def _routes_of(thread: NetThread) -> Iterator[SiteLink]:
    for route in thread.routes:
        seen: set[str] = set()
        for detail in route.details:
            for destination in detail.destinations if detail.is_enabled else ():
                if destination.name not in seen:
                    seen.add(destination.name)
                    yield SiteLink(
                        thread.name, destination.name, LinkKind.ROUTE, destination.line, route.transaction_id
                    )


def _connections_of(config: NetConfig) -> Iterator[SiteLink]:
    servers = {each.protocol.port: each for each in config.threads if each.protocol.is_server and each.protocol.port}
    readers = {each.protocol.in_folder: each for each in config.threads if each.protocol.in_folder}
    for thread in config.threads:
        protocol = thread.protocol
        if protocol.is_server is not True and protocol.port and protocol.host.lower() in _HERE:
            server = servers.get(protocol.port)
            if server is not None and server.name != thread.name:
                yield SiteLink(thread.name, server.name, LinkKind.PORT, thread.line)
        reader = readers.get(protocol.out_folder) if protocol.out_folder else None
        if reader is not None and reader.name != thread.name:
            yield SiteLink(thread.name, reader.name, LinkKind.FOLDER, thread.line)


class SiteStep(NamedTuple):
    """A path of a message from its arrival at one thread to its arrival at another: a route, and a connection if
    needed.
    """

    destination: str
    links: tuple[SiteLink, ...]


def steps_of(config: NetConfig) -> dict[str, list[SiteStep]]:
    """Return by thread the paths of its messages to arrivals at other threads of the site; a path out of the site has
    none.
    """
    works_as_inbound = {each.name for each in config.threads if each.works_as_inbound}
    leading_on: dict[str, list[SiteLink]] = {}
    for link in _connections_of(config):
        leading_on.setdefault(link.source, []).append(link)
    found: dict[str, list[SiteStep]] = {}
    for thread in config.threads:
        for route in _routes_of(thread):
            steps = [SiteStep(each.destination, (route, each)) for each in leading_on.get(route.destination, ())]
            if route.destination in works_as_inbound:
                steps.append(SiteStep(route.destination, (route,)))
            if steps:
                found.setdefault(thread.name, []).extend(steps)
    return found


def cycles_of(config: NetConfig) -> list[list[SiteLink]]:
    """Return a cycle of edges for each group of threads that feed each other (strongly connected component)."""
    steps = steps_of(config)
    return [
        _one_cycle(group, steps)
        for group in groups_of({name: [each.destination for each in those] for name, those in steps.items()})
    ]


def groups_of(following: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the strongly connected components of a graph that contain a cycle (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    found: list[list[str]] = []

    def enter(name: str) -> tuple[str, Iterator[str]]:
        index[name] = low[name] = len(index)
        stack.append(name)
        on_stack.add(name)
        return name, iter(following.get(name, ()))

    for root in following:
        work = [] if root in index else [enter(root)]
        while work:
            name, rest = work[-1]
            after = next(rest, None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    group = _taken(stack, name)
                    on_stack.difference_update(group)
                    if len(group) > 1 or name in following.get(name, ()):
                        found.append(group)
            elif after not in index:
                work.append(enter(after))
            elif after in on_stack:
                low[name] = min(low[name], index[after])
    return found


def _taken(stack: list[str], name: str) -> list[str]:
    """Pop a name and all names above it from a stack; return them, that name first."""
    at = stack.index(name)
    group = stack[at:]
    del stack[at:]
    return group


def _one_cycle(group: Sequence[str], steps: Mapping[str, Sequence[SiteStep]]) -> list[SiteLink]:
    """Return the edges of the shortest cycle through the first thread of a group."""
    members, first = set(group), group[0]
    before: dict[str, tuple[str, SiteStep]] = {}
    waiting = [first]
    for name in waiting:
        for step in steps.get(name, ()):
            if step.destination == first:
                links = list(step.links)
                while name != first:
                    name, earlier = before[name]
                    links[:0] = earlier.links
                return links
            if step.destination in members and step.destination not in before:
                before[step.destination] = (name, step)
                waiting.append(step.destination)
    return []
