"""The results of `qsctl engine resend`, `delete` and `move`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from qsctl.cli.output.declared import DeclaredRows, Heading, read, table_of
from qsctl.cli.output.results import Block, LinesBlock, TextBlock

if TYPE_CHECKING:
    from qsctl.core.integration.message import Message


def counted(messages: int) -> str:
    """Return a number of messages with its noun, as in "2 messages"."""
    return f"{messages:,} message{'' if messages == 1 else 's'}"


def _mid_text(message: Message) -> str:
    return str(message.mid).strip("[]")


def _stop_first(message: Message) -> str | None:
    from qsctl.core.integration.administration import requirement_of

    requirement = requirement_of(message)
    return None if requirement is None else f"{requirement.keeper} {requirement.name}"


@dataclass(frozen=True)
class DeletedMessage:
    """A row: a message that was deleted, or would be."""

    mid: Annotated[str, "message id, x.y.z"]
    state: Annotated[int, "its number in the listing"]
    state_name: Annotated[str, "the same in words"]
    source: Annotated[str, "thread that it came in by"]
    destination: Annotated[str, "thread that it was for"]
    size_bytes: Annotated[int, "length of its data"]
    stop_first: Annotated[
        str | None, "kind and name of what must not run while it is deleted; empty for the error database"
    ]
    deleted: Annotated[bool, "false with --dry-run"]


@dataclass(frozen=True)
class Deleted(DeclaredRows, rows=DeletedMessage):
    """The messages that were deleted, or would be with `--dry-run`."""

    database: str
    messages: Sequence[Message]
    dry_run: bool
    advice: Sequence[str]
    """Lines with the threads and processes to stop first, if an engine uses the database."""

    def items(self) -> Sequence[DeletedMessage]:
        """Return the messages."""
        from qsctl.dumps.from_database import listed
        from qsctl.dumps.states import meaning_of

        return [
            read(
                DeletedMessage, each, mid=_mid_text(each), state=(code := listed(each).state),
                state_name=meaning_of(code).name, stop_first=_stop_first(each), deleted=not self.dry_run,
            )
            for each in self.messages
        ]  # fmt: skip

    def blocks(self) -> Sequence[Block]:
        """Return a listing of the messages, and a sentence with what was done."""
        from qsctl.dumps.from_database import listed
        from qsctl.dumps.model import ListingForm
        from qsctl.dumps.write import listing

        done = "would be deleted" if self.dry_run else "deleted"
        listed_ones = listing(map(listed, self.messages), ListingForm.SHORT)
        summary: list[Block] = [TextBlock(f"{self.database}: {counted(len(self.messages))} {done}.")]
        return [LinesBlock(listed_ones), *summary, *(TextBlock(line) for line in self.advice)]


@dataclass(frozen=True)
class ResentMessage:
    """A row: a message of the error database that was sent again, or would be."""

    mid: Annotated[str, "id that it had in the error database", Heading("Message Id")]
    error: Annotated[int, "number of the error that it was there for", Heading("Error")]
    error_name: Annotated[str, "the same in words", Heading("Why")]
    new_mid: Annotated[str, "id that it has now; with --dry-run: that it would get", Heading("New Id")]
    source_mid: Annotated[str, "id of the inbound message, which it keeps", Heading("Source Id")]
    queue: Annotated[str, "queue that it enters", Heading("Queue")]
    thread: Annotated[str, "thread of that queue", Heading("Thread")]
    priority: Annotated[int, "its priority now", Heading("Priority")]
    size_bytes: Annotated[int, "length of its data", Heading("Bytes")]
    resent: Annotated[bool, "false with --dry-run"]


@dataclass(frozen=True)
class Resent(DeclaredRows, rows=ResentMessage):
    """The messages of the error database that were sent again, or would be: each before and after."""

    database: str
    pairs: Sequence[tuple[Message, Message]]
    dry_run: bool

    def items(self) -> Sequence[ResentMessage]:
        """Return the messages."""
        from qsctl.dumps.states import meaning_of

        return [
            ResentMessage(
                mid=_mid_text(old),
                error=old.error,
                error_name=meaning_of(old.error).name,
                new_mid=_mid_text(new),
                source_mid=str(new.source_mid).strip("[]"),
                queue=new.queue_name,
                thread=new.owner,
                priority=new.priority,
                size_bytes=new.size_bytes,
                resent=not self.dry_run,
            )
            for old, new in self.pairs
        ]

    def blocks(self) -> Sequence[Block]:
        """Return a table, and a sentence with what was done."""
        is_edited = any(old.priority != new.priority for old, new in self.pairs)
        done = "would be sent again" if self.dry_run else "sent again; the next run of the engine delivers"
        tail = "" if self.dry_run else " it" if len(self.pairs) == 1 else " them"
        summary = f"{self.database}: {counted(len(self.pairs))} {done}{tail}."
        table = table_of(ResentMessage, self.items(), leave_out=() if is_edited else ("priority",))
        return [table, TextBlock(summary)]


@dataclass(frozen=True)
class MovedMessage:
    """A row: a message of the recovery database that was moved, or would be."""

    mid: Annotated[str, "message id, which it keeps", Heading("Message Id")]
    from_state: Annotated[int, "number of the queue that it was in"]
    from_queue: Annotated[str, "that queue's name"]
    was: Annotated[str, Heading("Was in")]
    from_thread: Annotated[str, "thread of that queue", Heading("Of thread")]
    state: Annotated[int, "number of the queue that it is in now; in the error database that of the error"]
    queue: Annotated[str, "that queue's name, or why it is in the error database"]
    now: Annotated[str, Heading("Is in")]
    thread: Annotated[str, "thread of that queue", Heading("Thread")]
    destination: Annotated[str, "thread that it goes out by"]
    priority: Annotated[int, "its priority now", Heading("Priority")]
    stop_first: Annotated[str | None, "kind and name of what must not run while it is moved"]
    moved: Annotated[bool, "false with --dry-run"]


@dataclass(frozen=True)
class MovedMessages(DeclaredRows, rows=MovedMessage):
    """The messages of the recovery database that were moved, or would be: each before and after."""

    database: str
    pairs: Sequence[tuple[Message, Message]]
    dry_run: bool
    advice: Sequence[str]
    """Lines with the threads and processes to stop first, if an engine uses the database."""

    def items(self) -> Sequence[MovedMessage]:
        """Return the messages in the order in which they will be sent."""
        from qsctl.dumps.states import meaning_of

        rows: list[MovedMessage] = []
        for old, new in self.pairs:
            state = new.error or new.state.code
            queue = meaning_of(new.error).name if new.is_error else new.queue_name
            rows.append(
                read(
                    MovedMessage, new, mid=_mid_text(old), from_state=old.state.code, from_queue=old.queue_name,
                    was=f"{old.state.code} {old.queue_name}", from_thread=old.owner, state=state, queue=queue,
                    now=f"{state} {queue}", thread=new.owner, stop_first=_stop_first(old), moved=not self.dry_run,
                )
            )  # fmt: skip
        return rows

    def blocks(self) -> Sequence[Block]:
        """Return a table, and a sentence with what was done."""
        done = "would be moved" if self.dry_run else "moved; the next run of the engine finds"
        tail = "" if self.dry_run else " it there" if len(self.pairs) == 1 else " them there"
        summary = f"{self.database}: {counted(len(self.pairs))} {done}{tail}."
        return [self.table(), TextBlock(summary), *(TextBlock(line) for line in self.advice)]
