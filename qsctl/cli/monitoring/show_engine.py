"""`qsctl show engine`: the messages that wait in an engine, their ages, the queues' rates, and the errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from qsctl.cli.engine.looks import LookOptions, SourcesArgument, WatchedEngine
from qsctl.cli.engine.results import age_text
from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.results import Block, Plain, Row, TextBlock, counted
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.dumps.figures import EngineFigures, QueueTrend

MINUTE_S: Final = 60.0


def _rate_text(value: float | None) -> str | None:
    return None if value is None else f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


@dataclass(frozen=True)
class WaitingQueue:
    """A row: a queue of a thread in which messages wait."""

    thread: Annotated[str, "thread that holds the messages", Heading("Thread")]
    state: Annotated[int, "number of the queue: qsctl engine states"]
    queue: Annotated[str, "the queue's name"]
    numbered: Annotated[str, Heading("Queue", cell="queue")]
    messages: Annotated[int, "messages in it", Heading("Messages")]
    size_bytes: Annotated[int, "length of their data"]
    oldest_age_s: Annotated[
        float | None, "seconds since the oldest of them came in; null: no time is stated",
        Heading("Oldest", shown=age_text, cell="oldest"),
    ]  # fmt: skip
    arrived_per_min: Annotated[
        float | None, "messages a minute that came into it, at least; null: there is nothing to compare with",
        Heading("In/min", rank=1, shown=_rate_text, cell="arrived"),
    ]  # fmt: skip
    left_per_min: Annotated[
        float | None, "messages a minute that left it, at least",
        Heading("Out/min", rank=1, shown=_rate_text, cell="left"),
    ]  # fmt: skip
    growth_per_min: Annotated[
        float | None, "by how many messages a minute it gets longer; below zero: shorter",
        Heading("Growth/min", short="Growth", rank=2, shown=_rate_text, cell="growth"),
    ]  # fmt: skip
    empty_at: Annotated[
        str | None, "when it is empty at this rate; null: never, or it is", Heading("Empty at", cell="empty")
    ]
    empty_in_s: Annotated[float | None, "in how many seconds that is"]


_RATES: Final = ("arrived_per_min", "left_per_min", "growth_per_min", "empty_at")
"""Columns that require a comparison with an earlier listing."""


@dataclass(frozen=True)
class ShownEngine(DeclaredRows, rows=WaitingQueue):
    """An engine at one instant."""

    watched: WatchedEngine

    document_help: ClassVar[Mapping[str, str]] = {
        "taken": "-o json and yaml: the instant, on the clock of the engine's host; with the rest beside `queues`",
        "compared_with": "the instant that rates are counted from",
        "sources": "files that were read",
        "recovery_messages": "messages of the recovery database",
        "error_messages": "messages of the error database",
        "errors": "how many of them have which number: state, name, messages",
        "threads": "by thread: last_receive_age_s of a source; received and delivered in all, of a database of ours",
        "damage": "damaged places of a database",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return DAMAGED if a part could not be read, else DONE."""
        return ExitStatus.DAMAGED if self.watched.damage else ExitStatus.DONE

    def document(self) -> Plain:
        """Return the figures and the queues."""
        history = self.watched.history
        now, before = history.now, history.before
        return {
            "taken": str(now.taken.local),
            "compared_with": None if before is None else str(before.taken.local),
            "sources": list(now.sources),
            "recovery_messages": now.recovery_messages,
            "error_messages": now.error_messages,
            "errors": error_rows(now),
            "threads": self._threads(),
            "damage": list(self.watched.damage),
            "queues": self.rows(),
        }

    def items(self) -> Sequence[WaitingQueue]:
        """Return the queues."""
        history = self.watched.history
        return [_waiting(each, history.now) for each in history.trends()]

    def _threads(self) -> list[Row]:
        history = self.watched.history
        now, ages = history.now, history.last_receive_ns
        return [
            {
                "thread": name,
                "last_receive_age_s": ages[name] / 1e9 if name in ages else None,
                "received": now.received.get(name),
                "delivered": now.delivered.get(name),
            }
            for name in sorted({*ages, *now.received, *now.delivered})
        ]

    def blocks(self) -> Sequence[Block]:
        """Return tables of the queues, of the errors by number, and of the last message of each source."""
        history = self.watched.history
        now = history.now
        rates = () if history.before is not None else _RATES
        table = table_of(WaitingQueue, self.items(), empty="Nothing waits.", leave_out=rates)
        since = "" if history.before is None else f", since {moment_text(history.before)}"
        text = (
            f"{moment_text(now)}{since}: {counted(now.recovery_messages, 'message')} in the recovery database, "
            f"{now.error_messages} in the error database."
        )
        blocks: list[Block] = [TextBlock(text), table]
        blocks += [TextBlock(f"Damaged: {each}", "bad") for each in self.watched.damage]
        blocks += [TextBlock(f"Error {each['state']}, {each['name']}: {each['messages']}") for each in error_rows(now)]
        blocks += [
            TextBlock(f"Last message of {name}: {age_text(age_ns / 1e9)} before.")
            for name, age_ns in sorted(history.last_receive_ns.items())
        ]
        return blocks

    def prometheus(self) -> str:
        """Return the figures as metrics, as `qsctl metrics engine` prints them."""
        from qsctl.cli.monitoring._engine_metrics import engine_metrics

        return engine_metrics(self.watched)


def _waiting(each: QueueTrend, now: EngineFigures) -> WaitingQueue:
    span_s, growth, empty_ns = each.span_ns / 1e9, each.growth_per_s, each.empty_after_ns
    per_min = MINUTE_S / span_s if span_s else None
    return WaitingQueue(
        thread=each.key.thread,
        state=each.key.state,
        queue=each.key.name,
        numbered=f"{each.key.state} {each.key.name}",
        messages=each.messages,
        size_bytes=each.size_bytes,
        oldest_age_s=None if each.oldest_age_ns is None else each.oldest_age_ns / 1e9,
        arrived_per_min=None if per_min is None or each.arrived is None else each.arrived * per_min,
        left_per_min=None if per_min is None or each.left is None else each.left * per_min,
        growth_per_min=None if growth is None else growth * MINUTE_S,
        empty_at=None if empty_ns is None else empty_at(now, empty_ns),
        empty_in_s=None if empty_ns is None else empty_ns / 1e9,
    )


def empty_at(now: EngineFigures, after_ns: int) -> str:
    """Return the instant at which a queue becomes empty as a time of day, with the date if it is on another day."""
    from qsctl.dumps.moments import Moment

    local = now.taken.local
    then = Moment(local.at_ns + after_ns, is_utc=local.is_utc)
    return then.time_of_day[:5] if then.day == local.day else f"{then.day} {then.time_of_day[:5]}"


def moment_text(figures: EngineFigures) -> str:
    """Return the instant of figures as text."""
    local = figures.taken.local
    return f"{local.day} {local.time_of_day}"


def error_rows(now: EngineFigures) -> list[Row]:
    """Return the error numbers of the error database with their counts, in order."""
    from qsctl.dumps.states import meaning_of

    return [
        {"state": number, "name": meaning_of(number).name, "messages": count}
        for number, count in sorted(now.errors.items())
    ]


def show_engine(sources: SourcesArgument, *, options: LookOptions) -> ShownEngine:
    """Show the messages that wait in an engine, by thread and queue: number, ages, and when the queue will be empty.

    Of several listings the newest one is compared with an earlier one. Messages that arrived and left in between are in
    neither, so both rates are lower bounds. Exits with 9 where a database is damaged.
    """
    return ShownEngine(options.look(sources))
