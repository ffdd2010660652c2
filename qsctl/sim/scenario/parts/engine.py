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
    """The message continues with changed content."""
    DROP = "drop"
    """The message is deleted (the engine's disposition KILL)."""
    SPLIT = "split"
    """The procedure makes several messages of one, which all continue."""
    FAIL = "fail"
    """The procedure aborts with an error."""
    LOOP = "loop"
    """The procedure never returns."""
    SEND = "send"
    OVER = "over"
    PROTO = "proto"
    ERROR = "error"
    KILLREPLY = "killreply"
    REROUTE = "reroute"
    RETRY = "retry"
    """The procedure answers RETRY until the message had `times` attempts; then the message continues."""


class Spread(StrEnum):
    """A distribution of durations."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class EngineProcedure:
    """A user procedure of the engine: its action, the messages that it applies to, and its duration."""

    does: Behaviour = Behaviour.PASS
    every: int = 1
    results: int = 2
    """Number of messages that `split` makes of one."""
    to: str = ""
    """The destination of `send`."""
    transaction: str = ""
    """The transaction id of `reroute`."""
    times: int = 1
    takes_ns: Nanoseconds = 0
    spread: Spread = Spread.CONSTANT
    recoverable: bool = False
    """Whether the messages that it returns are stored in the recovery database from then on."""
    text: str = ""
    """For `error` and `fail` the reason; for `change` the text appended to the content."""
    name: str = ""
    """The name at the site."""


@dataclass(frozen=True, slots=True)
class EngineTranslation:
    """A translation, which makes `results` messages of one; with `error_every` it fails at result `error_after`."""

    results: int = 1
    takes_ns: Nanoseconds = 0
    """Duration for each resulting message."""
    spread: Spread = Spread.CONSTANT
    error_every: int = 0
    error_after: int = 1
    severity: ErrorSeverity = ErrorSeverity.ACTION
    on_error: ErrorControl = ErrorControl.SKIP
    name: str = ""
    """The name at the site."""


@dataclass(frozen=True, slots=True)
class EngineDetail:
    """A route detail; `to` contains the names of the destination threads, separated by spaces."""

    to: str = ""
    kind: DetailKind = DetailKind.RAW
    pre: tuple[EngineProcedure, ...] = ()
    translations: tuple[EngineTranslation, ...] = ()
    post: tuple[EngineProcedure, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineRoute:
    """The route of the messages with one transaction id; `*` matches every id without a route of its own."""

    transaction: str = "*"
    details: tuple[EngineDetail, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineTransaction:
    """A transaction id of arriving messages, and its relative frequency."""

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
    """The rate at which the receiver processes messages, one at a time; constant or Poisson (exponential times)."""
    refuses: float = 0.0
    """Probability that the receiver refuses a message."""
    retries: int = -1
    retry_interval_ns: Nanoseconds = 5 * SECOND_NS
    awaits_reply: bool = False
    reply_timeout_ns: Nanoseconds = INFINITE_NS
    reply_delay_ns: Nanoseconds = 0
    silent: float = 0.0
    """Probability that the receiver sends no reply."""
    procedures: tuple[EngineProcedure, ...] = ()
    outages: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineThread:
    """A protocol thread of a process, with its inbound and outbound sides."""

    name: str
    tps_retries: int = 3
    tps_retry_interval_ns: Nanoseconds = 100_000_000
    inbound: EngineInbound | None = None
    outbound: EngineOutbound | None = None
    stops: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """A process of the engine, with its threads."""

    name: str
    threads: tuple[EngineThread, ...] = ()
    crashes: tuple[ClientInterval, ...] = ()


@dataclass(frozen=True, slots=True)
class Engine:
    """An integration engine. `failures` are power failures, which stop all processes at once."""

    icl_delay_ns: Nanoseconds = 0
    turns_max: int = 20
    processes: tuple[EngineProcess, ...] = ()
    failures: tuple[ClientInterval, ...] = ()
