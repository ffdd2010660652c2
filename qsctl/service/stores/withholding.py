"""The removal of messages that must not be sent because a store failed [QS 2.4, 2.14.2].

Decides: which messages of a turn are changed or dropped after the store of a queue, or of the service's state, has
failed. A producer is answered 0 for a sample that is not stored; a sample without a durable record is not delivered; a
command whose effect is not durable is answered with an error. The status and the data of such a queue contain the
reason of its suspension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec

from qsctl.core.admin.reply import QueueData, Reply, ReturnCode, SamplesChanged
from qsctl.core.messages import (
    AckResponse,
    CommandReply,
    Delivery,
    Outbound,
    QueueName,
    WriteAcknowledgment,
)
from qsctl.core.ready import Ready
from qsctl.core.records import Enqueued, Record, RemovalCause, Removed
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import Damaged
from qsctl.identity import SampleIdentity


@dataclass
class Failure:
    """A failed store of a queue, and the samples that were refused (answered 0) since."""

    error: Damaged
    refused: dict[int, SampleIdentity] = field(default_factory=dict)
    """The refused samples by position, since several samples may have the same identity, also as dead letters."""
    is_undone: bool = False
    """Whether the queue was restored to the content of its store."""
    is_reported: bool = False
    was_attempted: bool = False
    """Whether storing its whole content was tried."""


def withhold(turns: Sequence[Ready], failures: Mapping[QueueName, Failure], service: Damaged | None) -> None:
    """Remove or change the messages of these turns that depend on records that are not durable."""
    for ready in turns:
        removal: Damaged | None = None
        for batch in ready.batches:
            failure = failures.get(batch.stream)
            if failure is not None:
                for record in batch.records:
                    removal = _note(record, failure, moves=ready.moves_samples) or removal
        error = service if service is not None and ready.service_records else removal
        refused = {name: set(failure.refused.values()) for name, failure in failures.items()}
        errors = {name: failure.error for name, failure in failures.items()}
        ready.messages[:] = [
            kept for message in ready.messages if (kept := _withheld(message, refused, error, errors)) is not None
        ]


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


def explained(message: Outbound, failures: Mapping[QueueName, Failure]) -> Outbound:
    """Return a message as sent: status and data of a queue that cannot be stored include the reason of its
    suspension.
    """
    if isinstance(message, CommandReply) and isinstance(message.reply.body, SharedReaderQueueStatus | QueueData):
        failure = failures.get(message.reply.body.queue_name)
        if failure is not None:
            text = f"suspended, for it cannot be stored: {failure.error.message}"
            return msgspec.structs.replace(message, reply=msgspec.structs.replace(message.reply, text=text))
    return message
