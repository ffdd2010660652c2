"""The configuration of an integration engine: processes, threads, their procedures and routes [CLOVERLEAF]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qsctl.core.integration.message import PRIORITY_DEFAULT, Message
from qsctl.core.integration.procedures import Procedure
from qsctl.core.integration.routes import Route
from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS, Nanoseconds

TURNS_MAX: Final = 20
"""Maximum number of times that OVER or REROUTE may send a message back."""


@dataclass(frozen=True, slots=True)
class InboundSettings:
    """The inbound side of a protocol thread."""

    is_logged: bool = True
    """Database logging: whether messages are in the recovery database from their arrival."""
    procedures: tuple[Procedure, ...] = ()
    reply_procedures: tuple[Procedure, ...] = ()
    """The procedures for replies; without any, a reply only ends the wait for it."""
    routes: tuple[Route, ...] = ()
    transaction_id_of: Callable[[Message], str] = lambda message: message.transaction_id
    """Return the transaction id of a message; may raise ProcedureFailed."""
    priority: int = PRIORITY_DEFAULT


@dataclass(frozen=True, slots=True)
class OutboundSettings:
    """The outbound side of a protocol thread."""

    procedures: tuple[Procedure, ...] = ()
    reply_procedures: tuple[Procedure, ...] = ()
    """The procedures for outgoing replies."""
    retries: int = -1
    """Maximum number of further deliveries after the first one fails; -1: unlimited."""
    retry_interval_ns: Nanoseconds = 5 * SECOND_NS
    awaits_reply: bool = False
    reply_timeout_ns: Nanoseconds = INFINITE_NS


@dataclass(frozen=True, slots=True)
class ThreadSettings:
    """A protocol thread: one connection for inbound messages, outbound messages, or both."""

    name: str
    inbound: InboundSettings | None = None
    outbound: OutboundSettings | None = None
    tps_retries: int = 3
    """Maximum number of further runs of procedures that return RETRY; -1: unlimited."""
    tps_retry_interval_ns: Nanoseconds = 100 * MILLISECOND_NS
    interval_ns: Nanoseconds = INFINITE_NS
    """Interval at which its procedures run in mode `time`."""
    is_started: bool = True


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """A process: protocol threads, and the translation thread for their messages."""

    name: str
    threads: tuple[ThreadSettings, ...]
    is_started: bool = True


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The configuration of a whole engine.

    Raises:
        InvalidInput: two threads or processes have one name, or a route leads to a thread without an outbound side.
    """

    processes: tuple[ProcessSettings, ...]
    icl_delay_ns: Nanoseconds = 0
    """Transfer time of a message between two threads."""
    turns_max: int = TURNS_MAX
    site: int = 0
    """The first number of its message ids."""

    def __post_init__(self) -> None:
        names = [thread.name for process in self.processes for thread in process.threads]
        for kind, found in (("processes", [each.name for each in self.processes]), ("threads", names)):
            twice = sorted({name for name in found if found.count(name) > 1})
            if twice:
                raise InvalidInput(f"two {kind} are called {twice[0]!r}", remedy="Give each a name of its own.")
        senders = {each.name for process in self.processes for each in process.threads if each.outbound is not None}
        for process in self.processes:
            for thread in process.threads:
                for route in thread.inbound.routes if thread.inbound else ():
                    for destination in [each for detail in route.details for each in detail.destinations]:
                        if destination not in senders:
                            raise InvalidInput(
                                f"thread {thread.name}, transaction id {route.transaction_id}: the destination "
                                f"{destination!r} is not a thread with an outbound side",
                                remedy=f"Allowed: {', '.join(sorted(senders)) or 'none'}.",
                            )
