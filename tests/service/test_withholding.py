"""What leaves of a turn whose records could not be stored."""

from __future__ import annotations

from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.messages import AckResponse, CommandReply, WriteAcknowledgment
from qsctl.core.queue.restore import without
from qsctl.core.ready import Batch, Ready
from qsctl.core.records import DeadLetterReason, Enqueued, RemovalCause, Removed
from qsctl.errors import Damaged
from qsctl.identity import Guid, SampleIdentity
from qsctl.service.stores.withholding import Failure, withhold

QUEUE = "P/S/orders"
WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)


def test_a_sample_written_behind_a_flush_is_refused_when_both_cannot_be_stored() -> None:
    identity = SampleIdentity(WRITER, 2)
    records = [Removed(QUEUE, 1, RemovalCause.FLUSHED), Enqueued(QUEUE, 2, identity, 0, 9)]
    reply = CommandReply(
        SampleIdentity(READER, 1), "app", Reply(ReturnCode.OK, "1 sample removed"), queue=QUEUE, rests_on=1
    )
    answer = WriteAcknowledgment(QUEUE, identity, AckResponse.ACCEPTED, rests_on=2)
    turn = Ready([Batch(QUEUE, 1, [*records])], [reply, answer], [])
    withhold([turn], {QUEUE: Failure(Damaged("the disk refuses"))}, None)
    withheld, refused = turn.messages
    assert isinstance(withheld, CommandReply)
    assert withheld.reply.retcode is ReturnCode.ERROR
    assert refused == WriteAcknowledgment(QUEUE, identity, AckResponse.REJECTED, rests_on=2), (
        "its record is not durable"
    )


def test_only_the_sample_that_was_refused_counts_as_never_written() -> None:
    """Dead letters of two queues, or of two samples that had the identity one after the other, have one identity."""
    identity = SampleIdentity(WRITER, 2)

    def letter(position: int, source: str) -> Enqueued:
        return Enqueued(
            QUEUE, position, identity, 0, 9, dead_letter_from=source, dead_letter_reason=DeadLetterReason.MAX_RETRIES
        )

    failure = Failure(Damaged("the disk refuses"))
    withhold([Ready([Batch(QUEUE, 2, [letter(2, "Bill@S")])], [], [])], {QUEUE: failure}, None)
    stored = [letter(1, "Order@S"), letter(2, "Bill@S"), Removed(QUEUE, 2, RemovalCause.DELIVERED)]
    assert list(without(stored, failure.refused)) == stored[:1]
