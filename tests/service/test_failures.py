"""What leaves of a turn whose records could not be stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.messages import AckResponse, CommandReply, RunAccepted, RunDelivery, WriteAcknowledgment, one_by_one
from qsctl.core.queue.restore import without
from qsctl.core.ready import Batch, Ready
from qsctl.core.records import (
    AssignedRun,
    DeadLetterReason,
    Enqueued,
    EnqueuedRun,
    RemovalCause,
    Removed,
    StreamRecord,
)
from qsctl.errors import Damaged
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.service.stores._failures import Failures
from qsctl.storage.room import DiskFailed, DiskFull
from tests.service.pipelines import ON_DISK, queue, service, writes

QUEUE = "P/S/orders"
WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)


def failed() -> Failures:
    """A service that cannot store its queue."""
    failures = Failures()
    failures.fail([QUEUE], Damaged("the disk refuses"))
    return failures


def test_a_sample_written_behind_a_flush_is_refused_when_both_cannot_be_stored() -> None:
    identity = SampleIdentity(WRITER, 2)
    records = [Removed(QUEUE, 1, RemovalCause.FLUSHED), Enqueued(QUEUE, 2, identity, 0, 9)]
    reply = CommandReply(
        SampleIdentity(READER, 1), "app", Reply(ReturnCode.OK, "1 sample removed"), queue=QUEUE, rests_on=1
    )
    answer = WriteAcknowledgment(QUEUE, identity, AckResponse.ACCEPTED, rests_on=2)
    turn = Ready([Batch(QUEUE, 1, [*records])], [reply, answer], [])
    failed().withhold([turn])
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

    failures = failed()
    failures.withhold([Ready([Batch(QUEUE, 2, [letter(2, "Bill@S")])], [], [])])
    stored = [letter(1, "Order@S"), letter(2, "Bill@S"), Removed(QUEUE, 2, RemovalCause.DELIVERED)]
    assert list(without(stored, failures.queues[QUEUE].refused)) == stored[:1]


def test_every_sample_of_a_run_is_refused_and_none_is_sent_when_it_cannot_be_stored() -> None:
    first, payloads = SampleIdentity(WRITER, 2), (b"x",) * 3
    nil = (NIL_GUID, NIL_GUID, NIL_IDENTITY, NIL_GUID)
    records: list[StreamRecord] = [
        EnqueuedRun(QUEUE, 5, first, payloads, 0, 9, *nil, 0),
        AssignedRun(QUEUE, 5, 3, (READER,)),
    ]
    accepted = RunAccepted(QUEUE, first, 3, rests_on=3)
    elsewhere = RunAccepted("P/S/bills", first, 3)
    sent = RunDelivery(QUEUE, READER, 5, first, payloads, *nil, 0, 0, 1, 6)
    turn = Ready([Batch(QUEUE, 1, records, 4)], [accepted, sent, elsewhere], [])
    failures = failed()
    failures.withhold([turn])
    identities = [SampleIdentity(WRITER, number) for number in (2, 3, 4)]
    assert list(one_by_one(turn.messages)) == [
        *(WriteAcknowledgment(QUEUE, each, AckResponse.REJECTED, rests_on=3) for each in identities),
        *elsewhere.singles(),
    ]
    assert failures.queues[QUEUE].refused == dict(enumerate(identities, 5))


@pytest.mark.parametrize("name", ["segments", "database", ""])
def test_a_store_of_which_a_sync_failed_goes_on_in_new_files_though_the_disk_was_full_meanwhile(
    tmp_path: Path, name: str
) -> None:
    """The system shows what a failed sync was to cover, but may never write it: no later sync covers it."""
    loop = service(tmp_path, queue("segments"), queue("database", ON_DISK), keeps_state=True)
    loop.turn(writes(1, topic="Segments") + writes(1, topic="Database"))
    loop.stores.queues["P/S/segments"].compact(loop.engine.snapshot_queue("P/S/segments"))
    files = {"segments": "QSSegments@S@0@app_d0.db", "database": "QSDatabase@S@0@app.db", "": "QSservice@app.db"}
    before = {each: (tmp_path / files[each]).stat().st_ino for each in files}
    failures = loop.stores.failures
    if name:
        failures.fail([f"P/S/{name}"], DiskFailed("a sync"))
        failures.queues[f"P/S/{name}"].note(DiskFull("a write"))
    else:
        failures.fail_service(DiskFailed("a sync"))
        failures.fail_service(DiskFull("a write"))
    loop.recovery.heed()
    loop.recovery.attempt(at_once=True)
    assert not loop.recovery.is_needed
    loop.close()
    loop.stores.close()
    after = {each.name: each.stat().st_ino for each in tmp_path.iterdir()}
    assert {each for each in files if after.get(files[each]) != before[each]} == {name}
    again = service(tmp_path, queue("segments"), queue("database", ON_DISK), keeps_state=True)
    assert [len([*each.held]) for each in again.engine.hosted.by_name.values()] == [1, 1]
    again.stores.close()
