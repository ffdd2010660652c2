"""A site as its NetConfig describes it: processes, threads, routes, details, procedures, destinations.

Every part knows the line that it begins in. What the file does not state is None or empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

STATIC_ROUTE: Final = "_HCI_static_route_"
"""Name of a route for all messages, whatever their transaction id."""
STATIC_ELSE_ROUTE: Final = "_HCI_static_else_route_"
"""Name of a route for messages that no other route is for."""


class StackPlace(StrEnum):
    """The place of a thread's stack of procedures, by the name of its key."""

    IN_DATA = "IN_DATA"
    OUT_DATA = "OUT_DATA"
    IN_REPLY = "IN_REPLY"
    OUT_REPLY = "OUT_REPLY"


class NetDetailKind(StrEnum):
    """The kind of a route detail, by the value of its key TYPE."""

    RAW = "raw"
    TRANSLATE = "xlate"
    STYLESHEET = "xslt"
    GENERATE = "generate"
    CHAIN = "chain"


@dataclass(frozen=True, slots=True)
class NetProcedure:
    """A procedure of a stack, by its name."""

    name: str
    line: int = 0
    arguments: str = ""
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class NetDestination:
    """A destination of a route detail: the name of a thread."""

    name: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class NetDetail:
    """A route detail."""

    kind: NetDetailKind | None
    """None: a type that is not known here."""
    destinations: tuple[NetDestination, ...] = ()
    pre: tuple[NetProcedure, ...] = ()
    """Those of a raw and of a generate detail, too."""
    translations: tuple[str, ...] = ()
    """Files of translations, in order; several in a chain."""
    post: tuple[NetProcedure, ...] = ()
    is_enabled: bool = True
    line: int = 0


@dataclass(frozen=True, slots=True)
class NetRoute:
    """The route of messages with a transaction id."""

    transaction_id: str
    """With `is_wildcard` a regular expression that a whole transaction id must match."""
    details: tuple[NetDetail, ...] = ()
    is_wildcard: bool = False
    line: int = 0

    @property
    def is_static(self) -> bool:
        """Return whether it is for all messages."""
        return self.transaction_id == STATIC_ROUTE

    @property
    def is_else(self) -> bool:
        """Return whether it is for messages that no other route is for."""
        return self.transaction_id == STATIC_ELSE_ROUTE


@dataclass(frozen=True, slots=True)
class NetProtocol:
    """The connection of a thread, as its key PROTOCOL describes it."""

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
    """Whether what is sent to it enters it as inbound messages."""
    is_logged: bool | None = None
    """Database logging; None: the file does not state it."""
    awaits_reply: bool | None = None
    stacks: dict[StackPlace, tuple[NetProcedure, ...]] = field(default_factory=dict)
    routes: tuple[NetRoute, ...] = ()
    reply_routes: tuple[NetRoute, ...] = ()

    def stack(self, place: StackPlace) -> tuple[NetProcedure, ...]:
        """Return the procedures that run at a place: those that are not disabled."""
        return tuple(each for each in self.stacks.get(place, ()) if each.is_enabled)

    @property
    def is_inbound(self) -> bool:
        """Return whether messages arrive by it."""
        return bool(self.routes) and not self.is_outbound_only


@dataclass(frozen=True, slots=True)
class NetProcess:
    """A process."""

    name: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class NetRemote:
    """A destination at another site, under a name of its own."""

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
    """In the order of the file; two of one name are two."""
    remotes: tuple[NetRemote, ...] = ()

    def thread(self, name: str) -> NetThread | None:
        """Return the first thread of a name."""
        return next((each for each in self.threads if each.name == name), None)
