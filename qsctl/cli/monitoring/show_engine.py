"""`qsctl show engine`: what waits in an engine, how long, how fast it gets less, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.engine.looks import LookOptions, SourcesArgument, WatchedEngine
from qsctl.cli.engine.results import age_text
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, counted
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.dumps.figures import EngineFigures, QueueTrend

MINUTE_S: Final = 60.0


@dataclass(frozen=True)
class ShownEngine(Result):
    """An engine at one instant."""

    watched: WatchedEngine

    field_help: ClassVar[Mapping[str, str]] = {
        "thread": "thread that holds the messages",
        "state": "number of the queue: qsctl engine states",
        "queue": "the queue's name",
        "messages": "messages in it",
        "size_bytes": "length of their data",
        "oldest_age_s": "seconds since the oldest of them came in; null: no time is stated",
        "arrived_per_min": "messages a minute that came into it, at least; null: there is nothing to compare with",
        "left_per_min": "messages a minute that left it, at least",
        "growth_per_min": "by how many messages a minute it gets longer; below zero: shorter",
        "empty_at": "when it is empty at this rate; null: never, or it is",
        "empty_in_s": "in how many seconds that is",
        "taken": "-o json and yaml: the instant, on the clock of the engine's host; with the rest beside `queues`",
        "compared_with": "the instant that rates are counted from",
        "sources": "files that were read",
        "recovery_messages": "messages of the recovery database",
        "error_messages": "messages of the error database",
        "errors": "how many of them have which number: state, name, messages",
        "threads": "by thread: last_receive_age_s of a source; received and delivered in all, of a database of ours",
        "damage": "damaged places of a database",
    }
    row_fields: ClassVar[tuple[str, ...]] = tuple(field_help)[:11]

    @property
    def exit_status(self) -> ExitStatus:
        """DAMAGED where not everything could be read."""
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

    def rows(self) -> Sequence[Row]:
        """One row a queue."""
        history = self.watched.history
        return [queue_row(each, history.now) for each in history.trends()]

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
        """Return the queues, the errors by number, and the last message of each source."""
        history = self.watched.history
        now = history.now
        columns = [
            Column("thread", "Thread"),
            Column("queue", "Queue"),
            Column("messages", "Messages", "right"),
            Column("oldest", "Oldest", "right"),
        ]
        if history.before is not None:
            columns += [
                Column("arrived", "In/min", "right", rank=1),
                Column("left", "Out/min", "right", rank=1),
                Column("growth", "Growth/min", "right", short="Growth", rank=2),
                Column("empty", "Empty at"),
            ]
        rows = [_shown(row) for row in self.rows()]
        since = "" if history.before is None else f", since {moment_text(history.before)}"
        text = (
            f"{moment_text(now)}{since}: {counted(now.recovery_messages, 'message')} in the recovery database, "
            f"{now.error_messages} in the error database."
        )
        blocks: list[Block] = [TextBlock(text), TableBlock(columns, rows, empty="Nothing waits.")]
        blocks += [TextBlock(f"Damaged: {each}", "bad") for each in self.watched.damage]
        blocks += [TextBlock(f"Error {each['state']}, {each['name']}: {each['messages']}") for each in error_rows(now)]
        blocks += [
            TextBlock(f"Last message of {name}: {age_text(age_ns / 1e9)} before.")
            for name, age_ns in sorted(history.last_receive_ns.items())
        ]
        return blocks

    def prometheus(self) -> str:
        """Return the figures as metrics; see `qsctl metrics engine`."""
        from qsctl.cli.monitoring.engine_metrics import engine_metrics

        return engine_metrics(self.watched)


def queue_row(each: QueueTrend, now: EngineFigures) -> dict[str, Plain]:
    """Return a queue as an object with stable names."""
    span_s, growth, empty_ns = each.span_ns / 1e9, each.growth_per_s, each.empty_after_ns
    per_min = MINUTE_S / span_s if span_s else None
    return {
        "thread": each.key.thread,
        "state": each.key.state,
        "queue": each.key.name,
        "messages": each.messages,
        "size_bytes": each.size_bytes,
        "oldest_age_s": None if each.oldest_age_ns is None else each.oldest_age_ns / 1e9,
        "arrived_per_min": None if per_min is None or each.arrived is None else each.arrived * per_min,
        "left_per_min": None if per_min is None or each.left is None else each.left * per_min,
        "growth_per_min": None if growth is None else growth * MINUTE_S,
        "empty_at": None if empty_ns is None else empty_at(now, empty_ns),
        "empty_in_s": None if empty_ns is None else empty_ns / 1e9,
    }


def empty_at(now: EngineFigures, after_ns: int) -> str:
    """Return when a queue is empty: the time of day, with the date where it is another day."""
    from qsctl.dumps.moments import Moment

    local = now.taken.local
    then = Moment(local.at_ns + after_ns, is_utc=local.is_utc)
    return then.time_of_day[:5] if then.day == local.day else f"{then.day} {then.time_of_day[:5]}"


def moment_text(figures: EngineFigures) -> str:
    """Return the instant of figures for people."""
    local = figures.taken.local
    return f"{local.day} {local.time_of_day}"


def error_rows(now: EngineFigures) -> list[Row]:
    """Return the numbers of the error database, in order."""
    from qsctl.dumps.states import meaning_of

    return [
        {"state": number, "name": meaning_of(number).name, "messages": count}
        for number, count in sorted(now.errors.items())
    ]


def _shown(row: Row) -> Row:
    shown = {name: _figure(row[f"{name}_per_min"]) for name in ("arrived", "left", "growth")}
    return {
        **row,
        "queue": f"{row['state']} {row['queue']}",
        "oldest": age_text(row["oldest_age_s"]),
        **shown,
        "empty": row["empty_at"],
    }


def _figure(value: Plain) -> str | None:
    return None if not isinstance(value, int | float) else f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def show_engine(sources: SourcesArgument, *, options: LookOptions) -> ShownEngine:
    """Show the messages that wait in an engine, by thread and queue: number, ages, and when the queue will be empty.

    Of several listings the newest one is compared with an earlier one. Messages that arrived and left in between are in
    neither, so both rates are lower bounds. Exits with 9 where a database is damaged.
    """
    return ShownEngine(options.look(sources))
