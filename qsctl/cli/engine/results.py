"""The results of `qsctl engine` about messages: listings, groups, counts, and the table of states."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from qsctl.cli.output.declared import DeclaredResult, DeclaredRows, Heading
from qsctl.cli.output.payloads import BASE64, TEXT
from qsctl.cli.output.results import (
    Block,
    Column,
    LazyRows,
    LinesBlock,
    ListResult,
    Plain,
    Row,
    TableBlock,
    TextBlock,
)
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.dumps.groups import GroupBy, MessageGroup
    from qsctl.dumps.model import ListedMessage, ListingForm
    from qsctl.dumps.moments import Moment
    from qsctl.dumps.states import StateMeaning

MESSAGE_HELP: Final = {
    "mid": "message id, x.y.z",
    "state": "number of its queue; in the error database that of the error: qsctl engine states",
    "state_name": "the same in words",
    "queue": "the queue's name, where it is known; of a failed message, where it failed",
    "created": "when its inbound message came in; a time of day where the listing has no more",
    "age_s": "seconds since then up to --now, else up to the newest time there is",
    "class": "P: of a protocol, E: of the engine, I: indeterminate",
    "type": "D: data, R: reply, U: unknown",
    "forward": "whether it was forwarded",
    "priority": "higher goes first",
    "size_bytes": "length of its data",
    "source": "thread that it came in by",
    "destination": "thread that it goes out by; empty: not routed yet",
    "source_mid": "id of the inbound message that it resulted from",
    "original_source": "thread that it came in by first",
    "original_destination": "thread that it was for first",
    "owner": "thread that holds it",
    "process": "process of that thread",
    "transaction_id": "what it is routed by",
    "skips_translation": "whether it goes past translation",
    "retries": "failed deliveries so far",
    "flags": "bits, as in the listing",
    "entered": "when it got into its state",
    "outbound": "when it reached its outbound thread",
    "user_data": "what procedures keep with it",
    "error_text": "why it is in the error database",
    "others": "columns and lines of a listing that are not known here",
    "payload": "with -L: its data",
    "payload_encoding": "text or base64",
}


def message_row(message: ListedMessage, now: Moment | None, *, with_data: bool = False) -> Row:
    """Return a message as a row with stable field names."""
    from qsctl.dumps.groups import age_ns
    from qsctl.dumps.states import meaning_of

    age = None if message.created is None or now is None else age_ns(message.created, now) / 1e9
    row: dict[str, Plain] = {
        "mid": str(message.mid).strip("[]"),
        "state": message.state,
        "state_name": meaning_of(message.state).name,
        "queue": message.queue or None,
        "created": _text(message.created),
        "age_s": age,
        "class": message.message_class or None,
        "type": message.type or None,
        "forward": message.forward,
        "priority": message.priority,
        "size_bytes": message.size_bytes,
        "source": message.source,
        "destination": message.destination,
        "source_mid": None if message.source_mid is None else str(message.source_mid).strip("[]"),
        "original_source": message.original_source or None,
        "original_destination": message.original_destination or None,
        "owner": message.owner or None,
        "process": message.process or None,
        "transaction_id": message.transaction_id or None,
        "skips_translation": message.skips_translation,
        "retries": message.retries,
        "flags": message.flags,
        "entered": _text(message.entered),
        "outbound": _text(message.outbound),
        "user_data": message.user_data or None,
        "error_text": message.error_text or None,
        "others": dict(message.others),
    }
    if with_data:
        row["payload"], row["payload_encoding"] = _payload(message.data)
    return row


def _text(moment: Moment | None) -> str | None:
    return None if moment is None else str(moment)


def _payload(data: bytes | None) -> tuple[str | None, str | None]:
    if data is None:
        return None, None
    try:
        return data.decode("utf-8"), TEXT
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), BASE64


@dataclass(frozen=True)
class Dumped(ListResult):
    """The messages of a database or a listing; with `groups`, the number of messages in each."""

    messages: Sequence[ListedMessage]
    form: ListingForm
    expanded: bool
    now: Moment | None
    groups: Sequence[MessageGroup] | None = None
    keys: Sequence[GroupBy] = ()
    is_damaged: bool = False

    field_help: ClassVar[Mapping[str, str]] = {
        **MESSAGE_HELP,
        "messages": "with --group-by: how many the group has; its keys have the names given there",
        "oldest": "with --group-by: when the oldest was created",
        "newest": "with --group-by: when the newest was created",
        "oldest_age_s": "with --group-by: the oldest one's age",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return DAMAGED if a part could not be read, else DONE."""
        return ExitStatus.DAMAGED if self.is_damaged else ExitStatus.DONE

    def rows(self) -> Sequence[Row]:
        """Return one row per message, or per group."""
        from qsctl.dumps.model import ListingForm

        if self.groups is not None:
            return [self._group_row(each) for each in self.groups]
        with_data = self.form is ListingForm.EXTENDED
        names = [name for name in MESSAGE_HELP if with_data or not name.startswith("payload")]
        return LazyRows(self.messages, names, partial(message_row, now=self.now, with_data=with_data))

    def _group_row(self, group: MessageGroup) -> Row:
        from qsctl.dumps.groups import age_ns

        oldest = group.oldest
        return {
            **dict(zip((str(key) for key in self.keys), group.keys, strict=True)),
            "messages": group.messages,
            "size_bytes": group.size_bytes,
            "oldest": _text(oldest),
            "newest": _text(group.newest),
            "oldest_age_s": None if oldest is None or self.now is None else age_ns(oldest, self.now) / 1e9,
        }

    def blocks(self) -> Sequence[Block]:
        """Return the listing in the form that operators know, or a table of groups."""
        from qsctl.dumps.write import listing

        if self.groups is None:
            return [LinesBlock(listing(self.messages, self.form, expanded=self.expanded))]
        total: dict[str, Plain] = {
            str(self.keys[0]): "total",
            "messages": sum(group.messages for group in self.groups),
            "size_bytes": sum(group.size_bytes for group in self.groups),
        }
        columns = [
            *(Column(str(key), key.value.capitalize()) for key in self.keys),
            Column("messages", "Messages", "right"),
            Column("size_bytes", "Bytes", "right"),
            Column("oldest", "Oldest"),
            Column("newest", "Newest"),
            Column("oldest_age", "Oldest age", "right"),
        ]
        rows: list[Row] = [
            {
                **row,
                "oldest": _to_second(group.oldest),
                "newest": _to_second(group.newest),
                "oldest_age": age_text(row["oldest_age_s"]),
            }
            for group, row in zip(self.groups, self.rows(), strict=True)
        ]
        return [TableBlock(columns, [*rows, total] if len(rows) > 1 else rows, empty="No messages.")]


def _to_second(moment: Moment | None) -> str | None:
    """Return a time for a table: without fraction of a second."""
    return None if moment is None else str(moment).partition(".")[0].rstrip("Z").replace("T", " ")


def age_text(seconds: Plain) -> str | None:
    """Return an age as text: days, hours, minutes and seconds; below a minute with its unit."""
    from qsctl.instant import MILLISECOND_NS, SECOND_NS, format_duration

    if not isinstance(seconds, int | float):
        return None
    unit = SECOND_NS if abs(seconds) >= 10 else MILLISECOND_NS
    rounded = round(seconds * SECOND_NS / unit) * unit
    days, rest = divmod(rounded // SECOND_NS, 86_400)
    if abs(seconds) < 60:
        return format_duration(rounded)
    words = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days} d {words}" if days else words


@dataclass(frozen=True)
class MessageCount(DeclaredResult):
    """The number of messages."""

    messages: Annotated[int, "how many there are"]
    is_damaged: bool = False

    @property
    def exit_status(self) -> ExitStatus:
        """Return DAMAGED if a part could not be read, else DONE."""
        return ExitStatus.DAMAGED if self.is_damaged else ExitStatus.DONE

    def blocks(self) -> Sequence[Block]:
        """Return the number alone, for scripts."""
        return [TextBlock(str(self.messages))]


@dataclass(frozen=True)
class StateRow:
    """A row: a number of the column State, with its meaning."""

    state: Annotated[int, "number in the State column of a listing", Heading("State")]
    name: Annotated[str, "what it is called here", Heading("Name")]
    database: Annotated[str, "recovery or errors"]
    meaning: Annotated[str, "what has happened to the message", Heading("Means")]
    remedy: Annotated[str, "what to do about it", Heading("What to do")]
    stop_before_delete: Annotated[
        str | None, "thread or process: what must stop before it is deleted; else it is delivered after all"
    ]


@dataclass(frozen=True)
class States(DeclaredRows, rows=StateRow):
    """The meanings of the numbers in the column State."""

    states: Sequence[StateMeaning]

    def items(self) -> Sequence[StateRow]:
        """Return the numbers."""
        from qsctl.dumps.states import is_error

        return [
            StateRow(
                each.code, each.name, "errors" if is_error(each.code) else "recovery", each.meaning, each.remedy,
                each.stop_first,
            )
            for each in self.states
        ]  # fmt: skip
