"""The integration engine of a scenario, as frozen dataclasses [CLOVERLEAF].

Procedures and translations are declared, not programmed: a behaviour, and which messages it applies to. The n-th
message of a thread is number n, from 1; with `every` 5 a behaviour applies to messages 5, 10, 15 and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from qsctl.core.integration.message import PRIORITY_DEFAULT
from qsctl.core.integration.routes import DetailKind, ErrorControl, ErrorSeverity
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds
from qsctl.sim.scenario.parts.client import ClientInterval
from qsctl.sim.scenario.parts.traffic import Arrivals, Size


class Behaviour(StrEnum):
    """The action of a procedure on the messages that it applies to; the others continue unchanged."""

    PASS = "pass"
    CHANGE = "change"
    """It continues with other content."""
    DROP = "drop"
    """KILL."""
    SPLIT = "split"
    """It makes several messages, which continue."""
    FAIL = "fail"
    """It breaks off."""
    LOOP = "loop"
    """It never comes back."""
    SEND = "send"
    OVER = "over"
    PROTO = "proto"
    ERROR = "error"
    KILLREPLY = "killreply"
    REROUTE = "reroute"
    RETRY = "retry"
    """It asks for other runs, `times` of them, then continues."""


class Spread(StrEnum):
    """A distribution of durations."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class EngineProcedure:
    """A procedure."""

    does: Behaviour = Behaviour.PASS
    every: int = 1
    results: int = 2
    """Messages of `split`."""
    to: str = ""
    """The destination of `send`."""
    transaction: str = ""
    """The transaction id of `reroute`."""
    times: int = 1
    takes_ns: Nanoseconds = 0
    spread: Spread = Spread.CONSTANT
    recoverable: bool = False
    """Whether what it returns is in the recovery database from there on."""
    text: str = ""
    """Of `error` and `fail`: why. Of `change`: what is added to the content."""
    name: str = ""
    """The name at the site."""


@dataclass(frozen=True, slots=True)
class EngineTranslation:
    """A translation: `results` messages out of one. With `error_every` it raises an error after `error_after`."""

    results: int = 1
    takes_ns: Nanoseconds = 0
    """For each result."""
    spread: Spread = Spread.CONSTANT
    error_every: int = 0
    error_after: int = 1
    severity: ErrorSeverity = ErrorSeverity.ACTION
    on_error: ErrorControl = ErrorControl.SKIP
    name: str = ""
    """The name at the site."""


@dataclass(frozen=True, slots=True)
class EngineDetail:
    """A route detail; `to` are threads, separated by spaces."""

    to: str = ""
    kind: DetailKind = DetailKind.RAW
    pre: tuple[EngineProcedure, ...] = ()
    translations: tuple[EngineTranslation, ...] = ()
    post: tuple[EngineProcedure, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineRoute:
    """The route for messages of a transaction id; `*`: of any other."""

    transaction: str = "*"
    details: tuple[EngineDetail, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineTransaction:
    """A transaction id of arriving messages, and how often it comes."""

    id: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class EngineInbound:
    """The inbound side of a thread, and the sender at the other end."""

    arrivals: Arrivals
    size: Size | None = None
    logging: bool = True
    priority: int = PRIORITY_DEFAULT
    transactions: tuple[EngineTransaction, ...] = ()
    procedures: tuple[EngineProcedure, ...] = ()
    reply_procedures: tuple[EngineProcedure, ...] = ()
    routes: tuple[EngineRoute, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineOutbound:
    """The outbound side of a thread, and the receiver at the other end."""

    service: Arrivals
    """The rate at which it processes messages, one at a time; constant or Poisson (exponential times)."""
    refuses: float = 0.0
    """Probability that it refuses a message."""
    retries: int = -1
    retry_interval_ns: Nanoseconds = 5 * SECOND_NS
    awaits_reply: bool = False
    reply_timeout_ns: Nanoseconds = INFINITE_NS
    reply_delay_ns: Nanoseconds = 0
    silent: float = 0.0
    """Probability that no reply comes."""
    procedures: tuple[EngineProcedure, ...] = ()
    outages: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineThread:
    """A protocol thread."""

    name: str
    tps_retries: int = 3
    tps_retry_interval_ns: Nanoseconds = 100_000_000
    inbound: EngineInbound | None = None
    outbound: EngineOutbound | None = None
    stops: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """A process."""

    name: str
    threads: tuple[EngineThread, ...] = ()
    crashes: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class Engine:
    """An integration engine. `failures`: power is gone, for all processes at once."""

    icl_delay_ns: Nanoseconds = 0
    turns_max: int = 20
    processes: tuple[EngineProcess, ...] = ()
    failures: tuple[ClientInterval, ...] = ()
