"""Payloads that the core does not keep [QS 2.14.2]: a driver puts them back into a batch.

Decides: the placeholder in a `Ready` for a payload that is on disk only. The driver reads the payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from qsctl.core.admin.reply import MessageData
from qsctl.core.messages import CommandReply, Delivery, Outbound
from qsctl.core.ready import Ready
from qsctl.core.records import Enqueued, Record

ReadPayload: TypeAlias = Callable[[str, int], bytes]
"""Reads the payload at a position of a queue (its full name) from that queue's store."""


def fill_payloads(ready: Ready, read: ReadPayload) -> None:
    """Put every payload into a batch.

    Call it before the records are stored: they may remove a sample whose payload is wanted. Whatever is missing in the
    batch was stored by an earlier one.
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

    def payload(queue: str, position: int) -> bytes:
        found = fresh.get((queue, position))
        return read(queue, position) if found is None else found

    ready.messages[:] = [_message_with_payload(message, payload) for message in ready.messages]


def records_with_payloads(records: Iterable[Record], read: ReadPayload) -> Iterator[Record]:
    """Return the records with every payload in them; for a snapshot too, before a store is compacted to it."""
    for record in records:
        if type(record) is Enqueued and record.payload_from is not None:
            payload = read(*record.payload_from)
            yield msgspec.structs.replace(record, payload=payload, payload_from=None)
        else:
            yield record


def _message_with_payload(message: Outbound, read: ReadPayload) -> Outbound:
    if type(message) is Delivery and message.payload is None:
        return msgspec.structs.replace(message, payload=read(message.queue, message.position))
    if type(message) is CommandReply and type(message.reply.body) is MessageData and message.reply.body.payload is None:
        body = message.reply.body
        filled = msgspec.structs.replace(body, payload=read(body.queue_name, body.position))
        return msgspec.structs.replace(message, reply=msgspec.structs.replace(message.reply, body=filled))
    return message
