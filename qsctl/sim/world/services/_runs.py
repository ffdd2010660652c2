"""The messages that reach a service between two passes, with samples and answers as runs, as the transport reads them.

A transport makes runs of several samples in one frame (`transport.dds.wire.frames`). A world has no frames: what waits
for a pass is as good as one.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from qsctl.core.messages import Acknowledgment, AckResponse, Inbound, RunAcknowledgment, Write, WriteRun
from qsctl.identity import NIL_GUID, SampleIdentity


def in_runs(messages: Sequence[Inbound]) -> list[Inbound]:
    """Return messages in order, those that differ in consecutive numbers and payloads only as runs."""
    found: list[Inbound] = []
    heads = [_head_of(each) for each in messages]
    start = 0
    while start < len(messages):
        first, head, stop = messages[start], heads[start], start + 1
        if head is not None:
            step = _number_of(messages[stop]) - _number_of(first) if stop < len(messages) else 0
            if step == 1 or (step > 1 and isinstance(first, Acknowledgment)):
                expected = _number_of(first) + step
                while stop < len(messages) and heads[stop] == head and _number_of(messages[stop]) == expected:
                    stop, expected = stop + 1, expected + step
        found.append(first if stop == start + 1 else _run_of(messages[start:stop], step))
        start = stop
    return found


def _head_of(message: Inbound) -> Write | Acknowledgment | None:
    """Return a message without its number and payload; None: it is by itself."""
    if isinstance(message, Write) and not message.waits_when_full:
        return structs.replace(message, identity=SampleIdentity(message.identity.writer_guid, 0), payload=b"")
    if isinstance(message, Acknowledgment) and message.response is AckResponse.ACCEPTED:
        writer_guid = message.identity.writer_guid
        # One with the nil GUID is a question.
        return None if writer_guid == NIL_GUID else structs.replace(message, identity=SampleIdentity(writer_guid, 0))
    return None


def _number_of(message: Inbound) -> int:
    return message.identity.sequence_number if isinstance(message, Write | Acknowledgment) else 0


def _run_of(messages: Sequence[Inbound], step: int) -> WriteRun | RunAcknowledgment:
    first = messages[0]
    if isinstance(first, Acknowledgment):
        return RunAcknowledgment(first.queue, first.consumer_guid, first.identity, len(messages), step)
    assert isinstance(first, Write)
    return WriteRun(
        first.participant,
        first.topic_name,
        first.identity,
        tuple([each.payload for each in messages if isinstance(each, Write)]),
        first.source_guid,
        first.related_source_guid,
        first.related_identity,
        first.related_reader_guid,
        first.flags,
        first.lifespan_ns,
        first.attempt,
    )
