"""The insertion of payloads that are on disk only into a batch [QS 2.14.2].

Decides: the placeholder in a `Ready` for such a payload. The driver reads the payload from its store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from qsctl.core.admin.reply import MessageData
from qsctl.core.messages import CommandReply, Delivery, Outbound, RunDelivery
from qsctl.core.ready import Ready
from qsctl.core.records import Enqueued, StreamRecord

ReadPayloads: TypeAlias = Callable[[str, Sequence[int]], Sequence[bytes]]
"""Read the payloads at ascending positions of a queue, given by full name, from that queue's store."""


def fill_payloads(ready: Ready, read: ReadPayloads) -> None:
    """Insert every missing payload into a batch.

    Call it before the records are stored, as they may remove a sample whose payload is needed. Every missing payload
    was stored by an earlier batch.
    """
    if not ready.may_lack_payloads:
        return
    fresh: dict[tuple[str, int], bytes] = {}
    for batch in ready.batches:
        filled = list(records_with_payloads(batch.records, read))
        # A dead letter may be sent in the batch that stores it: then its payload is in its own record.
        fresh.update(
            ((record.queue, record.position), record.payload)
            for open_record, record in zip(batch.records, filled, strict=True)
            if open_record is not record and type(record) is Enqueued
        )
        batch.records[:] = filled

    def payloads(queue: str, positions: Sequence[int]) -> Sequence[bytes]:
        found = [fresh[queue, each] for each in positions if (queue, each) in fresh] if fresh else []
        return found or read(queue, positions)

    ready.messages[:] = [_message_with_payload(message, payloads) for message in ready.messages]


def records_with_payloads(records: Iterable[StreamRecord], read: ReadPayloads) -> Iterator[StreamRecord]:
    """Yield the records with all payloads; also for a snapshot, before a store is compacted to it."""
    for record in records:
        if type(record) is Enqueued and record.payload_from is not None:
            queue, position = record.payload_from
            (payload,) = read(queue, (position,))
            yield msgspec.structs.replace(record, payload=payload, payload_from=None)
        else:
            yield record


def _message_with_payload(message: Outbound, read: ReadPayloads) -> Outbound:
    if type(message) is Delivery and message.payload is None:
        return msgspec.structs.replace(message, payload=read(message.queue, (message.position,))[0])
    if type(message) is RunDelivery and message.payloads[0] is None:
        return msgspec.structs.replace(message, payloads=read(message.queue, message.positions()))
    if type(message) is CommandReply and type(message.reply.body) is MessageData and message.reply.body.payload is None:
        body = message.reply.body
        filled = msgspec.structs.replace(body, payload=read(body.queue_name, (body.position,))[0])
        return msgspec.structs.replace(message, reply=msgspec.structs.replace(message.reply, body=filled))
    return message
