"""The results of `qsctl engine run` and `qsctl engine crash-points`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.results import Block, Plain, TextBlock, fields_of
from qsctl.cli.simulation.results.durations import short_duration, short_seconds
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.sim.engine.crash_points import CrashReport, PointRow
    from qsctl.sim.engine.run_on_disk import EngineRun, EngineTotals

_MOST_VIOLATIONS: Final = 20
_WAITS_NS: Final = 1_000_000_000
"""Age of the oldest message from which a queue is named as waiting."""


@dataclass(frozen=True)
class RanQueue:
    """A row: a queue of a thread at the end of a run."""

    thread: Annotated[str, "whose queue it is; of a post-translation queue, its destination", Heading("Thread")]
    queue: Annotated[str, "one of the eight queues", Heading("Queue")]
    length_messages: Annotated[int, "messages in it at the end", Heading("Length")]
    oldest_s: Annotated[
        float | None, "seconds that its oldest message is in it; null: it is empty",
        Heading("Oldest", shown=short_seconds, cell="oldest"),
    ]  # fmt: skip
    arrived_messages: Annotated[int, "messages that were put into it"]
    passed_messages: Annotated[int, "messages that left it, for work or to the next stage", Heading("Passed")]
    wait_mean_s: Annotated[
        float, "mean seconds that these were in it", Heading("Wait mean", shown=short_seconds, cell="mean")
    ]
    wait_max_s: Annotated[float, "the longest of them", Heading("Wait max", shown=short_seconds, cell="maximum")]


@dataclass(frozen=True)
class Ran(DeclaredRows, rows=RanQueue):
    """The outcome of a run of an engine."""

    scenario: str
    database: str
    run: EngineRun

    document_help: ClassVar[Mapping[str, str]] = {
        "scenario": "-o json and yaml: the scenario's name; with the rest of the run beside `queues`",
        "from_s": "virtual time at its beginning",
        "until_s": "virtual time at its end",
        "offered": "messages that senders had to send",
        "delivered": "messages that receivers took",
        "failed": "messages that went to the error database",
        "lost": "messages that were in no database when their process, or the run before this one, ended",
        "waiting_at_senders": "messages whose thread did not run",
        "recovered": "messages found in the recovery database by processes that started",
        "possible_duplicates": "of them, those that were being delivered",
        "left": "messages in the recovery database at the end",
        "errors": "messages in the error database at the end",
        "damage": "damaged places of the database: file, offset, size_bytes, what, kept_as",
        "total": "offered, delivered, failed and lost in all runs with this database, killed ones too",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return INTERRUPTED for an interrupted run, DAMAGED for a damaged database, else DONE."""
        if self.run.was_interrupted:
            return ExitStatus.INTERRUPTED
        return ExitStatus.DAMAGED if self.run.damage else ExitStatus.DONE

    def document(self) -> Plain:
        """Return the run, and its queues."""
        run = self.run
        return {
            "scenario": self.scenario,
            "database": self.database or None,
            "from_s": run.from_ns / 1e9,
            "until_s": run.until_ns / 1e9,
            "status": "interrupted" if run.was_interrupted else "complete",
            **run.counted._asdict(),
            **fields_of(run, "waiting_at_senders", "recovered"),
            "possible_duplicates": run.possible_duplicates,
            "left": len(run.left),
            "errors": len(run.errors),
            "records": run.records,
            "total": run.total._asdict(),
            "damage": [
                {
                    "file": str(each.file),
                    "offset": each.offset,
                    "size_bytes": each.size_bytes,
                    "what": each.what,
                    "kept_as": None if each.kept_as is None else str(each.kept_as),
                }
                for each in run.damage
            ],
            "down": [{"name": name, "is_process": is_process, "why": why} for name, is_process, why in run.threads],
            "queues": self.rows(),
        }

    def items(self) -> Sequence[RanQueue]:
        """Return the queues that at least one message has entered."""
        from qsctl.eventlog.outcomes import Outcome

        return [
            RanQueue(
                thread=each.thread,
                queue=each.queue,
                length_messages=each.length,
                oldest_s=None if each.oldest_ns is None else each.oldest_ns / 1e9,
                arrived_messages=each.counts.arrived,
                passed_messages=(passed := each.counts.by_outcome[Outcome.DELIVERED]),
                wait_mean_s=each.counts.wait_sum_ns // max(1, passed) / 1e9,
                wait_max_s=each.counts.wait_max_ns / 1e9,
            )
            for each in self.run.queues
        ]

    def blocks(self) -> Sequence[Block]:
        """Return the tables of messages by place, and of events."""
        run = self.run
        table = table_of(RanQueue, self.items(), empty="No message arrived.")
        blocks: list[Block] = [TextBlock(self._headline()), table]
        blocks += [TextBlock(line, "bad") for line in self._what_is_wrong()]
        if self.database:
            blocks.append(
                TextBlock(
                    f"{self.database}: {len(run.left):,} messages in the recovery database, {len(run.errors):,} in the "
                    "error database."
                )
            )
        if self.database and run.total != run.counted:
            blocks.append(TextBlock(f"In all runs with {self.database}: {_counted(run.total)}"))
        return blocks

    def _headline(self) -> str:
        run = self.run
        stopped = " Interrupted." if run.was_interrupted else ""
        recovered = f" It began with {run.recovered:,} messages recovered." if run.recovered else ""
        return (
            f"{self.scenario}: an integration engine from {short_duration(run.from_ns)} to "
            f"{short_duration(run.until_ns)} of virtual time.{stopped}{recovered}\n"
            f"{_counted(run.counted)}"
        )

    def _what_is_wrong(self) -> list[str]:
        run = self.run
        lines = [f"Damage: {report}" for report in run.damage]
        for name, is_process, why in run.threads:
            lines.append(f"{'Process' if is_process else 'Thread'} {name} does not run: {why}.")
        if run.waiting_at_senders:
            lines.append(f"{run.waiting_at_senders:,} messages wait at their senders, for threads that do not run.")
        if run.possible_duplicates:
            lines.append(
                f"{run.possible_duplicates:,} messages were being delivered when something stopped: they were, or will "
                "be, sent again as possible duplicates."
            )
        waiting = [each for each in run.queues if each.oldest_ns is not None and each.oldest_ns >= _WAITS_NS]
        if waiting:
            worst = max(waiting, key=lambda each: each.length)
            assert worst.oldest_ns is not None
            lines.append(
                f"Messages wait in the {worst.queue} queue of {worst.thread}: {worst.length:,}, the oldest for "
                f"{short_duration(worst.oldest_ns)}."
            )
        return lines


def _counted(totals: EngineTotals) -> str:
    return (
        f"{totals.offered:,} messages sent to it, {totals.delivered:,} delivered, {totals.failed:,} failed, "
        f"{totals.lost:,} lost."
    )


@dataclass(frozen=True)
class InterruptedStep:
    """A row: all interruptions after steps of one kind; its values are those of a `PointRow`."""

    after: Annotated[str, "last event before the interruption", Heading("Interrupted after")]
    points: Annotated[int, "interruptions there", Heading("Points")]
    translated_again: Annotated[
        int, "inbound messages found in translation: routing and translation began again",
        Heading("Translated again", short="Translated", rank=2),
    ]  # fmt: skip
    moved_on: Annotated[
        int, "results found in the partial queue without their inbound message: they went on",
        Heading("Moved on", rank=3),
    ]  # fmt: skip
    returned: Annotated[
        int, "messages on their way by ICL, back in the queue that they had left", Heading("Returned", rank=3)
    ]
    possible_duplicates: Annotated[
        int, "messages that were being delivered, sent again and marked",
        Heading("Possible duplicates", short="Duplicates", rank=1),
    ]  # fmt: skip
    dropped_copies: Annotated[
        int, "copies of changes that were interrupted before their last record",
        Heading("Dropped copies", short="Dropped", rank=2),
    ]  # fmt: skip
    lost: Annotated[
        int, "results of connections without database logging that are lost, as they must be",
        Heading("Lost, not logged", short="Lost"),
    ]  # fmt: skip
    violations: Annotated[int, "what must not have come out", Heading("Violations")]


@dataclass(frozen=True)
class InterruptedRun(DeclaredRows, rows=InterruptedStep):
    """The interruptions of an engine at all points, and the outcomes of its recoveries."""

    report: CrashReport

    @property
    def exit_status(self) -> ExitStatus:
        """Return DONE if every recovery kept the guarantees, else NO."""
        return ExitStatus.NO if self.report.violations else ExitStatus.DONE

    def document(self) -> Plain:
        """Return the numbers of points, the kinds of steps, and the violations."""
        report = self.report
        return {
            "scenario": report.scenario,
            "inbound_messages": report.sources,
            **fields_of(report, "records", "points"),
            "nested_points": report.nested,
            "rows": self.rows(),
            "violations": [
                {
                    **fields_of(each, "point", "nested", "after"),
                    "thread": each.source[0],
                    "number": each.source[1],
                    "what": each.what,
                }
                for each in report.violations
            ],
        }

    def items(self) -> Sequence[PointRow]:
        """Return the kinds of steps."""
        return self.report.rows

    def blocks(self) -> Sequence[Block]:
        """Return the table, and a sentence with the verdict."""
        report = self.report
        also = f", and again at {report.nested:,} points of the recovery" if report.nested else ""
        blocks: list[Block] = [
            TextBlock(
                f"{report.scenario}: {report.sources:,} inbound messages, {report.records:,} records; interrupted at "
                f"{report.points:,} points{also}."
            ),
            self.table(),
        ]
        if not report.violations:
            return [
                *blocks,
                TextBlock("All messages or no messages everywhere, none twice, and lost what was not logged.", "good"),
            ]
        blocks += [
            TextBlock(f"Point {each.point}: message {each.source[1]} of {each.source[0]} {each.what}.", "bad")
            for each in report.violations[:_MOST_VIOLATIONS]
        ]
        if (more := len(report.violations) - _MOST_VIOLATIONS) > 0:
            blocks.append(TextBlock(f"And {more:,} more: -o json has them all.", "bad"))
        return blocks
