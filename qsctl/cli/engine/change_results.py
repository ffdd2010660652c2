"""The results of `qsctl engine resend`, `delete` and `move`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.output.results import Block, Column, LinesBlock, ListResult, Row, TableBlock, TextBlock, fields_of

if TYPE_CHECKING:
    from qsctl.core.integration.message import Message


def counted(messages: int) -> str:
    """Return a number of messages in words."""
    return f"{messages:,} message{'' if messages == 1 else 's'}"


@dataclass(frozen=True)
class Deleted(ListResult):
    """Messages that were deleted, or would be."""

    database: str
    messages: Sequence[Message]
    dry_run: bool
    advice: Sequence[str]
    """Processes or threads to stop before, of a database that an engine uses."""

    field_help: ClassVar[Mapping[str, str]] = {
        "mid": "message id, x.y.z",
        "state": "its number in the listing",
        "state_name": "the same in words",
        "source": "thread that it came in by",
        "destination": "thread that it was for",
        "size_bytes": "length of its data",
        "stop_first": "kind and name of what must not run while it is deleted; empty for the error database",
        "deleted": "false with --dry-run",
    }
    row_fields: ClassVar[tuple[str, ...]] = tuple(field_help)

    def rows(self) -> Sequence[Row]:
        """One row a message."""
        from qsctl.core.integration.administration import requirement_of
        from qsctl.dumps.from_database import listed
        from qsctl.dumps.states import meaning_of

        rows: list[Row] = []
        for message in self.messages:
            requirement = requirement_of(message)
            code = listed(message).state
            rows.append(
                {
                    "mid": str(message.mid).strip("[]"),
                    "state": code,
                    "state_name": meaning_of(code).name,
                    **fields_of(message, "source", "destination", "size_bytes"),
                    "stop_first": None if requirement is None else f"{requirement.keeper} {requirement.name}",
                    "deleted": not self.dry_run,
                }
            )
        return rows

    def blocks(self) -> Sequence[Block]:
        """Their listing, and what was done."""
        from qsctl.dumps.from_database import listed
        from qsctl.dumps.model import ListingForm
        from qsctl.dumps.write import listing

        done = "would be deleted" if self.dry_run else "deleted"
        listed_ones = listing(map(listed, self.messages), ListingForm.SHORT)
        summary: list[Block] = [TextBlock(f"{self.database}: {counted(len(self.messages))} {done}.")]
        return [LinesBlock(listed_ones), *summary, *(TextBlock(line) for line in self.advice)]


@dataclass(frozen=True)
class Resent(ListResult):
    """Messages of the error database that were sent again, or would be: each as it was, and as it is now."""

    database: str
    pairs: Sequence[tuple[Message, Message]]
    dry_run: bool

    field_help: ClassVar[Mapping[str, str]] = {
        "mid": "id that it had in the error database",
        "error": "number of the error that it was there for",
        "error_name": "the same in words",
        "new_mid": "id that it has now; with --dry-run: that it would get",
        "source_mid": "id of the inbound message, which it keeps",
        "queue": "queue that it enters",
        "thread": "thread of that queue",
        "priority": "its priority now",
        "size_bytes": "length of its data",
        "resent": "false with --dry-run",
    }
    row_fields: ClassVar[tuple[str, ...]] = tuple(field_help)

    def rows(self) -> Sequence[Row]:
        """One row a message."""
        from qsctl.dumps.states import meaning_of

        return [
            {
                "mid": str(old.mid).strip("[]"),
                "error": old.error,
                "error_name": meaning_of(old.error).name,
                "new_mid": str(new.mid).strip("[]"),
                "source_mid": str(new.source_mid).strip("[]"),
                "queue": new.queue_name,
                "thread": new.owner,
                "priority": new.priority,
                "size_bytes": new.size_bytes,
                "resent": not self.dry_run,
            }
            for old, new in self.pairs
        ]

    def blocks(self) -> Sequence[Block]:
        """Return a table, and what was done."""
        is_edited = any(old.priority != new.priority for old, new in self.pairs)
        columns = [
            Column("mid", "Message Id"),
            Column("error", "Error", "right"),
            Column("error_name", "Why"),
            Column("new_mid", "New Id"),
            Column("source_mid", "Source Id"),
            Column("queue", "Queue"),
            Column("thread", "Thread"),
            *([Column("priority", "Priority", "right")] if is_edited else []),
            Column("size_bytes", "Bytes", "right"),
        ]
        done = "would be sent again" if self.dry_run else "sent again; the next run of the engine delivers"
        tail = "" if self.dry_run else " it" if len(self.pairs) == 1 else " them"
        summary = f"{self.database}: {counted(len(self.pairs))} {done}{tail}."
        return [TableBlock(columns, self.rows()), TextBlock(summary)]


@dataclass(frozen=True)
class MovedMessages(ListResult):
    """Messages of the recovery database that were moved, or would be: each as it was, and as it is now."""

    database: str
    pairs: Sequence[tuple[Message, Message]]
    dry_run: bool
    advice: Sequence[str]
    """Processes or threads to stop before, of a database that an engine uses."""

    field_help: ClassVar[Mapping[str, str]] = {
        "mid": "message id, which it keeps",
        "from_state": "number of the queue that it was in",
        "from_queue": "that queue's name",
        "from_thread": "thread of that queue",
        "state": "number of the queue that it is in now; in the error database that of the error",
        "queue": "that queue's name, or why it is in the error database",
        "thread": "thread of that queue",
        "destination": "thread that it goes out by",
        "priority": "its priority now",
        "stop_first": "kind and name of what must not run while it is moved",
        "moved": "false with --dry-run",
    }
    row_fields: ClassVar[tuple[str, ...]] = tuple(field_help)

    def rows(self) -> Sequence[Row]:
        """One row a message, in the order in which they go."""
        from qsctl.core.integration.administration import requirement_of
        from qsctl.dumps.states import meaning_of

        rows: list[Row] = []
        for old, new in self.pairs:
            requirement = requirement_of(old)
            rows.append(
                {
                    "mid": str(old.mid).strip("[]"),
                    "from_state": old.state.code,
                    "from_queue": old.queue_name,
                    "from_thread": old.owner,
                    "state": new.error or new.state.code,
                    "queue": meaning_of(new.error).name if new.is_error else new.queue_name,
                    "thread": new.owner,
                    **fields_of(new, "destination", "priority"),
                    "stop_first": None if requirement is None else f"{requirement.keeper} {requirement.name}",
                    "moved": not self.dry_run,
                }
            )
        return rows

    def blocks(self) -> Sequence[Block]:
        """Return a table, and what was done."""
        columns = [
            Column("mid", "Message Id"),
            Column("was", "Was in"),
            Column("from_thread", "Of thread"),
            Column("now", "Is in"),
            Column("thread", "Thread"),
            Column("priority", "Priority", "right"),
        ]
        rows = [
            {**row, "was": f"{row['from_state']} {row['from_queue']}", "now": f"{row['state']} {row['queue']}"}
            for row in self.rows()
        ]
        done = "would be moved" if self.dry_run else "moved; the next run of the engine finds"
        tail = "" if self.dry_run else " it there" if len(self.pairs) == 1 else " them there"
        summary = f"{self.database}: {counted(len(self.pairs))} {done}{tail}."
        return [TableBlock(columns, rows), TextBlock(summary), *(TextBlock(line) for line in self.advice)]
