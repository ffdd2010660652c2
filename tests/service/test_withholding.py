"""What leaves of a turn whose records could not be stored."""

from __future__ import annotations

from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.messages import AckResponse, CommandReply, WriteAcknowledgment
from qsctl.core.ready import Batch, Ready
from qsctl.core.records import Enqueued, RemovalCause, Removed
from qsctl.errors import Damaged
from qsctl.identity import Guid, SampleIdentity
from qsctl.service.withholding import Failure, withhold

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
