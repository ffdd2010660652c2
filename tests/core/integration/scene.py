"""An engine on a stage: what goes in, and a transcript of what comes out, in the order of doing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qsctl.core.integration.database import Database
from qsctl.core.integration.dispositions import Disposition, ProcedureContext
from qsctl.core.integration.engine import IntegrationEngine
from qsctl.core.integration.events import Changed, Event
from qsctl.core.integration.message import STATE_NAMES, Message, MessageId
from qsctl.core.integration.messages import (
    Accepted,
    Acknowledged,
    Answered,
    Arrived,
    ConnectionDelivery,
    Inbound,
    Outbound,
    SenderRefused,
)
from qsctl.core.integration.procedures import ProcedureMode, ProcedureOutput
from qsctl.core.integration.records import CopyRemoved, Failed, Moved, Record, Started, Stored
from qsctl.core.integration.routes import (
    ANY_TRANSACTION,
    DetailKind,
    ErrorControl,
    Route,
    RouteDetail,
    Step,
    TranslationProduced,
)
from qsctl.core.integration.settings import (
    EngineSettings,
    InboundSettings,
    OutboundSettings,
    ProcessSettings,
    ThreadSettings,
)

CONTINUE = ProcedureOutput(Disposition.CONTINUE)


@dataclass(frozen=True)
class Procedure:
    """Returns what its function returns; without one it lets everything pass."""

    does: Callable[[Message], Sequence[ProcedureOutput]] = lambda _: (CONTINUE,)
    duration_ns: int = 0
    name: str = "procedure"
    modes: list[tuple[ProcedureMode, ProcedureContext]] = field(default_factory=list)

    def run(self, mode: ProcedureMode, context: ProcedureContext, message: Message | None) -> Sequence[ProcedureOutput]:
        self.modes.append((mode, context))
        return () if message is None else self.does(message)

    def takes_ns(self, _message: Message) -> int:
        return self.duration_ns


def returns(disposition: Disposition, **fields: object) -> Procedure:
    """A procedure that returns every message with this disposition."""
    return Procedure(lambda _: (ProcedureOutput(disposition, **fields),))  # type: ignore[arg-type]


def splits(*payloads: bytes) -> Procedure:
    """A procedure that makes a message of each payload."""
    return Procedure(lambda _: [CONTINUE._replace(payload=payload) for payload in payloads])


@dataclass(frozen=True)
class Translation:
    """Takes these steps, whatever the message is."""

    steps: tuple[Step, ...]
    error_control: ErrorControl = ErrorControl.SKIP
    name: str = "translation"

    def run(self, _message: Message) -> Sequence[Step]:
        return iter(self.steps)  # type: ignore[return-value]


def makes(*payloads: bytes, takes_ns: int = 0) -> Translation:
    """A translation with these results."""
    return Translation(tuple(TranslationProduced(payload, takes_ns) for payload in payloads))


def raw(*to: str, pre: Sequence[Procedure] = ()) -> RouteDetail:
    return RouteDetail(to, DetailKind.RAW, tuple(pre))


def translate(
    *to: str, by: Sequence[Translation], pre: Sequence[Procedure] = (), post: Sequence[Procedure] = ()
) -> RouteDetail:
    return RouteDetail(to, DetailKind.TRANSLATE, tuple(pre), tuple(by), tuple(post))


def route(*details: RouteDetail, transaction: str = ANY_TRANSACTION) -> Route:
    return Route(transaction, details)


def inbound(
    *routes: Route, logged: bool = True, procedures: Sequence[Procedure] = (), **others: object
) -> InboundSettings:
    given = {"transaction_id_of": lambda message: message.transaction_id or "any", **others}
    return InboundSettings(logged, tuple(procedures), routes=routes, **given)  # type: ignore[arg-type]


def outbound(*procedures: Procedure, **others: object) -> OutboundSettings:
    return OutboundSettings(procedures, **others)  # type: ignore[arg-type]


def one_process(*threads: ThreadSettings, icl_delay_ns: int = 0) -> EngineSettings:
    return EngineSettings((ProcessSettings("p", threads),), icl_delay_ns)


def thread(name: str, *sides: InboundSettings | OutboundSettings, **others: object) -> ThreadSettings:
    given: dict[str, object] = {}
    for side in sides:
        given["inbound" if isinstance(side, InboundSettings) else "outbound"] = side
    return ThreadSettings(name, **given, **others)  # type: ignore[arg-type]


class Scene:
    """Feeds an engine; `lines` is the transcript."""

    def __init__(
        self, settings: EngineSettings, database: Database | None = None, *, acknowledges: bool = True
    ) -> None:
        self.settings = settings
        self.acknowledges = acknowledges
        self.now = 0
        self.lines: list[str] = []
        self.records: list[Record] = []
        self.events: list[Event] = []
        self.sent: list[Outbound] = []
        self._names: dict[int, MessageId] = {}
        if database is not None:
            self._names = {each.serial: each.mid for each in (*database.recovery.values(), *database.errors.values())}
        self.engine = IntegrationEngine(settings, database)
        self._take()

    def do(self, *messages: Inbound) -> Scene:
        for message in messages:
            self.engine.receive(self.now, message)
            self._take()
        return self

    def arrive(self, thread: str, *payloads: bytes, **others: object) -> Scene:
        for number, payload in enumerate(payloads, 1):
            self.do(Arrived(thread, number, payload, **others))  # type: ignore[arg-type]
        return self

    def until(self, now: int) -> Scene:
        """Let time pass, a deadline at a time."""
        while (deadline := self.engine.next_deadline()) is not None and deadline <= now:
            self.now = max(self.now, deadline)
            self.engine.advance(self.now)
            self._take()
        self.now = now
        self.engine.advance(now)
        self._take()
        return self

    def restart(self, *, records: int | None = None, settings: EngineSettings | None = None) -> Scene:
        """Interrupt it: a scene that begins with so many of its records."""
        database = Database(self.records[:records])
        return Scene(settings or self.settings, database, acknowledges=self.acknowledges)

    def take_lines(self) -> str:
        """The transcript since the last call, less `start`."""
        lines, self.lines = self.lines, []
        return "\n".join(line for line in lines if line != "start")

    def deliveries(self, thread: str | None = None) -> list[bytes]:
        return [
            each.payload for each in self.sent if isinstance(each, ConnectionDelivery) and thread in {None, each.thread}
        ]

    def _take(self) -> None:
        while True:
            ready = self.engine.take_ready()
            if not (ready.records or ready.messages or ready.events):
                return
            self.records += ready.records
            self.events += ready.events
            self.sent += ready.messages
            for record in ready.records:
                self.lines.append(self._record(record))
            for event in ready.events:
                if isinstance(event, Changed) and event.text:
                    self.lines.append(f"! {event.what} {event.name}: {event.text}")
            for message in ready.messages:
                self.lines.append(self._message(message))
                if isinstance(message, ConnectionDelivery) and self.acknowledges:
                    self.engine.receive(self.now, Acknowledged(message.thread, message.mid))

    def _record(self, record: Record) -> str:
        match record:
            case Started():
                return "start"
            case Stored(_, serial, message, payload):
                self._names[serial] = message.mid
                where = f"error {message.error}" if message.is_error else STATE_NAMES[message.state]
                return f"store {_name(message.mid)} {where} {message.owner} {payload.decode()}"
            case Moved(_, serial, state, _, _, owner):
                return f"move {_name(self._names[serial])} {STATE_NAMES[state]} {owner}"
            case Failed(_, serial, _, _, error, text):
                return f"fail {_name(self._names[serial])} {error} {text}"
            case CopyRemoved(_, serial, cause):
                return f"remove {_name(self._names[serial])} {cause.name.lower()}"

    def _message(self, message: Outbound) -> str:
        match message:
            case Accepted(thread, token):
                return f"< accepted {thread} {token}"
            case SenderRefused(thread, token):
                return f"< refused {thread} {token}"
            case ConnectionDelivery(thread, mid, payload):
                again = " possible duplicate" if message.is_possible_duplicate else ""
                return f"< deliver {thread} {_name(mid)} {payload.decode()}{again}"
            case Answered(mid, text, remedy):
                return f"< answer {_name(mid)} {text}" + (f" | {remedy}" if remedy else "")


def _name(mid: MessageId) -> str:
    return f"{mid.start}.{mid.number}"


def without_blanks(text: str) -> str:
    """A transcript as it is written in a test."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
