"""How the core's records, messages and events read in a transcript: one line each."""

from __future__ import annotations

import msgspec
import pytest

from qsctl.core.events import Event, SampleDeadLettered
from qsctl.core.messages import CommandReply, Delivery, Outbound, SampleFlag, StatusPublication, WriteAcknowledgment
from qsctl.core.queue.sample import Sample
from qsctl.core.records import Assigned, Enqueued, Record, Remembered, Removed, Returned, Undeliverable
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.identity import NIL_GUID, NIL_IDENTITY, SampleIdentity

QUIET = {"received", "enqueued", "sent", "returned"}
"""Events that a message or a record shows already; `show all` prints them."""


def name_of(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


def label(one: SampleIdentity) -> str:
    return f"{name_of(one.writer_guid)}{one.sequence_number}"


class Printer:
    """Names are short: the participant and the first subscriber are left out."""

    def __init__(self) -> None:
        self.shows_all = False
        self.dead_letters: dict[SampleIdentity, SampleIdentity] = {}
        """Dead letters have identities of their own; a transcript shows the ones of the undelivered samples."""

    def note(self, events: list[Event]) -> None:
        self.dead_letters |= {
            each.dead_letter: each.identity for each in events if isinstance(each, SampleDeadLettered)
        }

    def label(self, one: SampleIdentity) -> str:
        return label(self.dead_letters.get(one, one))

    def at(self, queue: str) -> str:
        return f"{queue.removeprefix('P/').removeprefix('S/')}"

    def sample_line(self, sample: Sample) -> str:
        holder = f" by {name_of(sample.holder)}" if sample.holder != NIL_GUID else ""
        return (
            f"#{sample.position} {label(sample.original_identity)} {sample.state.name.lower()}{holder}"
            f" attempts={sample.attempts}{' redelivered' if sample.redelivered else ''}"
            f"{' payload on disk' if sample.payload is None else ''}"
            f"{f' dead from {sample.dead_letter.queue}' if sample.dead_letter else ''}"
        )

    def record_line(self, record: Record) -> str:
        match record:
            case Enqueued(queue, position, one):
                back = ""
                if record.dead_letter_reason is not None:
                    mark = " redelivered" * bool(record.flags & SampleFlag.REDELIVERED)
                    place = f"{record.dead_letter_from} #{record.dead_letter_position}"
                    back = f" dead from {place} incarnation={record.dead_letter_incarnation}{mark}"
                return f"store  {self.at(queue)} #{position} {label(one)} enqueued{back}"
            case Assigned(queue, position, consumer, attempt):
                return f"store  {self.at(queue)} #{position} assigned to {name_of(consumer)} attempt={attempt}"
            case Returned(queue, position, attempts, redelivered, past):
                mark = " redelivered" if redelivered else ""
                before = f" held before by {' '.join(map(name_of, past))}" if past else ""
                return f"store  {self.at(queue)} #{position} returned attempts={attempts}{mark}{before}"
            case Undeliverable(queue, position, reason):
                return f"store  {self.at(queue)} #{position} undeliverable: {reason.name.lower()}"
            case Removed(queue, position, cause):
                return f"store  {self.at(queue)} #{position} removed: {cause.name.lower()}"
            case Remembered(queue, next_position, identities, incarnation):
                known = " ".join(map(self.label, identities)) or "-"
                return f"store  {self.at(queue)} incarnation={incarnation} next=#{next_position} remembers {known}"
        raise AssertionError(record)

    def message_line(self, message: Outbound) -> str:
        match message:
            case Delivery():
                flags = SampleFlag(message.flags)
                words = [f"{label(message.original_identity)} -> {name_of(message.consumer_guid)}"]
                words += [f"attempt={message.attempt}"] * (message.attempt > 1)
                words += ["redelivered"] * (SampleFlag.REDELIVERED in flags)
                words += ["last"] * (SampleFlag.LAST_SHARED_READER_QUEUE in flags)
                if message.related_identity != NIL_IDENTITY:
                    words.append(f"answers {label(message.related_identity)}")
                if message.dead_letter_reason is not None:
                    words.append(f"dead from {message.dead_letter_from}: {message.dead_letter_reason.name.lower()}")
                return f"send   {self.at(message.queue)} {' '.join(words)}"
            case WriteAcknowledgment(queue, one, response):
                return f"ack    {self.at(queue)} {label(one)} {int(response)}"
            case CommandReply():
                body = message.reply.body
                if isinstance(body, SharedReaderQueueStatus):
                    return f"reply  {message.reply.retcode.name} {self.status_line(body)}"
                return f"reply  {message.reply.retcode.name} {message.reply.text}"
            case StatusPublication(_, status):
                return f"publish {self.status_line(status)}"

    def status_line(self, status: SharedReaderQueueStatus) -> str:
        total = [f"{key[:-6]}={value}" for key, value in msgspec.structs.asdict(status.total).items() if value]
        total += [f"{key[:-6]}={value}" for key, value in msgspec.structs.asdict(status.additional).items() if value]
        return f"{self.at(status.queue_name)} holds {status.current_message_count}: {' '.join(total)}"

    def event_line(self, event: Event) -> str:
        kind = str(event.__struct_config__.tag)
        if kind in QUIET and not self.shows_all:
            return ""
        words = [kind, self.at(event.queue)]
        for key in event.__struct_fields__:
            value = getattr(event, key)
            if key == "identity":
                words.insert(1, self.label(value))
            elif key in ("reason", "cause"):
                words.append(value.name.lower())
            elif key == "to_queue":
                words.append(f"to {self.at(value)}")
            elif key == "count" and "step" not in event.__struct_fields__:  # a transcript has single samples
                words.append(str(value))
            elif key == "retired":
                words.append(key if value else f"not {key}")
        return f"tell   {' '.join(words)}"


@pytest.fixture
def printer() -> Printer:
    return Printer()
