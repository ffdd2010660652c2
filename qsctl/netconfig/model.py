"""A site as described by its NetConfig: processes, threads, routes, details, procedures, destinations.

Each part has the line at which it begins. A field that the file does not set is None or empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

STATIC_ROUTE: Final = "_HCI_static_route_"
"""Name of a route that applies to all messages, with any transaction id."""
STATIC_ELSE_ROUTE: Final = "_HCI_static_else_route_"
"""Name of a route that applies to messages to which no other route applies."""


class StackPlace(StrEnum):
    """The use of a thread's stack of procedures; the values are the keys of the file."""

    IN_DATA = "IN_DATA"
    OUT_DATA = "OUT_DATA"
    IN_REPLY = "IN_REPLY"
    OUT_REPLY = "OUT_REPLY"


class NetDetailKind(StrEnum):
    """The kind of a route detail; the values are those of its key TYPE."""

    RAW = "raw"
    TRANSLATE = "xlate"
    STYLESHEET = "xslt"
    GENERATE = "generate"
    CHAIN = "chain"


@dataclass(frozen=True, slots=True)
class NetProcedure:
    """A procedure in a stack."""

    name: str
    line: int = 0
    arguments: str = ""
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class NetDestination:
    """A destination of a route detail: a thread, by its name."""

    name: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class NetDetail:
    """A route detail: the processing of a message, and the destinations of its results."""

    kind: NetDetailKind | None
    """The kind; None for an unknown value of the file."""
    destinations: tuple[NetDestination, ...] = ()
    pre: tuple[NetProcedure, ...] = ()
    """The procedures before the translation; also those of a raw and of a generate detail."""
    translations: tuple[str, ...] = ()
    """Names of the files of translations, in order; a chain has several."""
    post: tuple[NetProcedure, ...] = ()
    is_enabled: bool = True
    line: int = 0


@dataclass(frozen=True, slots=True)
class NetRoute:
    """A route, which applies to messages of one transaction id or of a pattern."""

    transaction_id: str
    """The transaction id; with `is_wildcard` a regular expression that the whole id must match."""
    details: tuple[NetDetail, ...] = ()
    is_wildcard: bool = False
    line: int = 0

    @property
    def is_static(self) -> bool:
        """Return whether the route applies to all messages."""
        return self.transaction_id == STATIC_ROUTE

    @property
    def is_else(self) -> bool:
        """Return whether the route applies to messages to which no other route applies."""
        return self.transaction_id == STATIC_ELSE_ROUTE


@dataclass(frozen=True, slots=True)
class NetProtocol:
    """The connection of a thread, from its key PROTOCOL."""

    type: str = ""
    host: str = ""
    port: str = ""
    is_server: bool | None = None
    in_folder: str = ""
    out_folder: str = ""


@dataclass(frozen=True, slots=True)
class NetThread:
    """A protocol thread."""

    name: str
    process: str
    line: int = 0
    protocol: NetProtocol = NetProtocol()
    is_started: bool = True
    is_outbound_only: bool = False
    works_as_inbound: bool = False
    """Whether messages that are sent to the thread enter it as inbound messages."""
    is_logged: bool | None = None
    """Whether messages are stored in the recovery database; None: the file does not set it."""
    awaits_reply: bool | None = None
    stacks: dict[StackPlace, tuple[NetProcedure, ...]] = field(default_factory=dict)
    routes: tuple[NetRoute, ...] = ()
    reply_routes: tuple[NetRoute, ...] = ()

    def stack(self, place: StackPlace) -> tuple[NetProcedure, ...]:
        """Return the enabled procedures of a stack."""
        return tuple(each for each in self.stacks.get(place, ()) if each.is_enabled)

    @property
    def is_inbound(self) -> bool:
        """Return whether messages arrive at the site by this thread."""
        return bool(self.routes) and not self.is_outbound_only


@dataclass(frozen=True, slots=True)
class NetProcess:
    """A process of the engine, which runs threads."""

    name: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class NetRemote:
    """A destination at another site, under a local name."""

    name: str
    site: str = ""
    thread: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class NetConfig:
    """A whole site."""

    file: str
    processes: tuple[NetProcess, ...] = ()
    threads: tuple[NetThread, ...] = ()
    """The threads in the order of the file; a name that occurs twice has two entries."""
    remotes: tuple[NetRemote, ...] = ()

    def thread(self, name: str) -> NetThread | None:
        """Return the first thread of a name; None if none has it."""
        return next((each for each in self.threads if each.name == name), None)
