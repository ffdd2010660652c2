"""The failed stores of a service, and the messages that must not be sent because of them [QS 2.4, 2.14.2].

Decides: that a failure concerns the queue of the failed store, or the service's state; and which messages of a turn are
changed or dropped then. A producer is answered 0 for a sample that is not stored; a sample without a durable record is
not delivered; a command whose effect is not durable is answered with an error. The status and the data of such a queue
contain the reason of its suspension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec

from qsctl.core import records
from qsctl.core.admin.reply import QueueData, Reply, ReturnCode, SamplesChanged
from qsctl.core.messages import (
    AckResponse,
    CommandReply,
    Delivery,
    Outbound,
    QueueName,
    WriteAcknowledgment,
    one_by_one,
)
from qsctl.core.ready import Ready
from qsctl.core.records import Enqueued, Record, RemovalCause, Removed
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import Damaged
from qsctl.identity import SampleIdentity
from qsctl.storage.room import DiskFull


@dataclass
class Failure:
    """A failed store, and the samples of its queue that were refused (answered 0) since."""

    error: Damaged
    refused: dict[int, SampleIdentity] = field(default_factory=dict)
    """The refused samples by position, since several samples may have the same identity, also as dead letters."""
    is_undone: bool = False
    """Whether the queue was restored to the content of its store."""
    is_reported: bool = False
    was_attempted: bool = False
    """Whether storing its whole content was tried."""
    is_unsure: bool = False
    """Whether records that the files contain may not have reached the disk; no retry of a sync would show it."""

    def __post_init__(self) -> None:
        self.note(self.error)

    def note(self, error: Damaged) -> None:
        """Replace the reason by a later one."""
        self.error = error
        self.is_unsure |= not isinstance(error, DiskFull)


class Failures:
    """The failed stores of a service. Nothing more is written to one until its whole content was stored again."""

    def __init__(self) -> None:
        self.queues: dict[QueueName, Failure] = {}
        """The failure of each queue whose store has failed."""
        self.service: Failure | None = None
        """The failure of the service's state: the last change of the configuration could not be stored."""

    @property
    def error(self) -> Damaged | None:
        """The error of a failed store; None: no store has failed."""
        if self.queues:
            return next(iter(self.queues.values())).error
        return None if self.service is None else self.service.error

    def fail(self, names: Iterable[QueueName], error: Damaged) -> None:
        """Mark queues as failed."""
        for name in names:
            self.queues.setdefault(name, Failure(error))

    def fail_together(self, names: Iterable[QueueName]) -> None:
        """Mark all of these queues as failed if one of them has failed."""
        failure = next((self.queues[name] for name in names if name in self.queues), None)
        if failure is not None:
            self.fail(names, failure.error)

    def fail_service(self, error: Damaged) -> None:
        """Mark the service's state as failed, for this reason."""
        if self.service is None:
            self.service = Failure(error)
        else:
            self.service.note(error)

    def withhold(self, turns: Sequence[Ready]) -> None:
        """Remove or change the messages of written turns that depend on records that are not durable."""
        if self.error is None:
            return
        for ready in turns:
            removal: Damaged | None = None
            for batch in ready.batches:
                failure = self.queues.get(batch.stream)
                if failure is not None:
                    for record in records.one_by_one(batch.records):
                        removal = _note(record, failure, moves=ready.moves_samples) or removal
            error = self.service.error if self.service is not None and ready.service_records else removal
            refused = {name: set(failure.refused.values()) for name, failure in self.queues.items()}
            errors = {name: failure.error for name, failure in self.queues.items()}
            ready.messages[:] = [
                kept
                for message in one_by_one(ready.messages)
                if (kept := _withheld(message, refused, error, errors)) is not None
            ]

    def explain(self, messages: list[Outbound]) -> None:
        """Add the reason of its suspension to the status and the data of each queue that cannot be stored."""
        if self.queues:
            messages[:] = [_explained(each, self.queues) for each in messages]


def _note(record: Record, failure: Failure, *, moves: bool) -> Damaged | None:
    if isinstance(record, Enqueued):
        if not moves:  # a moved sample is in one of two stores: its producer is not notified again
            failure.refused[record.position] = record.identity
    elif isinstance(record, Removed) and record.cause is RemovalCause.FLUSHED:
        return failure.error
    return None


def _withheld(
    message: Outbound,
    refused: Mapping[QueueName, Set[SampleIdentity]],
    error: Damaged | None,
    errors: Mapping[QueueName, Damaged],
) -> Outbound | None:
    if isinstance(message, WriteAcknowledgment):
        if message.identity in refused.get(message.queue, ()):
            return msgspec.structs.replace(message, response=AckResponse.REJECTED)
    elif isinstance(message, Delivery):
        return None if message.queue in refused else message
    elif isinstance(message, CommandReply) and message.reply.retcode is ReturnCode.OK:
        if error is None and isinstance(message.reply.body, SamplesChanged):
            error = errors.get(message.queue)
        if error is not None:
            text = f"done, but it could not be stored: {error.message}. {error.remedy}"
            return msgspec.structs.replace(message, reply=Reply(ReturnCode.ERROR, text))
    return message


def _explained(message: Outbound, failures: Mapping[QueueName, Failure]) -> Outbound:
    if isinstance(message, CommandReply) and isinstance(message.reply.body, SharedReaderQueueStatus | QueueData):
        failure = failures.get(message.reply.body.queue_name)
        if failure is not None:
            text = f"suspended, for it cannot be stored: {failure.error.message}"
            return msgspec.structs.replace(message, reply=msgspec.structs.replace(message.reply, text=text))
    return message
