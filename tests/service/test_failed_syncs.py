"""A failed sync concerns every queue with records in the log that no sync has covered, whichever queue it was for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    Delivery,
    SampleFlag,
    Write,
    WriteAcknowledgment,
    one_by_one,
)
from tests.service.disk_trials import refusing
from tests.service.pipelines import READER, messages_of, queue, service, writes

QUEUES = (queue("orders"), queue("bills"))


def test_an_acknowledged_sample_comes_back_at_once_and_not_at_the_next_start_if_the_sync_for_another_queue_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a world: the log was cut at its last sync, and with it a removal whose sync had been deferred.

    The removal is lost; the sample is delivered again, with the flag, while it is still known what it was.
    """
    loop = service(tmp_path, *QUEUES)
    reports: list[tuple[str, str]] = []
    loop.recovery.report = lambda event, name, _: reports.append((event, name))
    (first,) = writes(1)
    assert isinstance(first, Write)
    loop.turn([first, ConsumerJoined("P/S/orders", READER)])
    loop.begin([Acknowledgment("P/S/orders", READER, first.identity)])
    loop.finish()
    assert not [each for each in messages_of(loop.pop_finished()) if isinstance(each, Delivery)]
    with monkeypatch.context() as disk:
        for call in ("fdatasync", "fsync"):
            disk.setattr(os, call, refusing(errno.EIO, calls=call, only="QSlog"))
        loop.begin(writes(2, topic="Bills"))
        loop.finish()
        answers = [each for each in messages_of(loop.pop_finished()) if isinstance(each, WriteAcknowledgment)]
        assert [each.response for each in answers] == [AckResponse.REJECTED]
    loop.recovery.heed()
    loop.recovery.attempt(at_once=True)
    assert not loop.recovery.is_needed
    assert sorted(reports) == [
        (event, f"P/S/{name}") for event in ("storage_failed", "storage_recovered") for name in ("bills", "orders")
    ]
    joined = ConsumerJoined("P/S/orders", READER)
    sent = [each for each in one_by_one(loop.turn([*writes(3), joined]).messages) if isinstance(each, Delivery)]
    assert [(each.identity.sequence_number, bool(each.flags & SampleFlag.REDELIVERED)) for each in sent] == [
        (1, True),
        (3, False),
    ]
    loop.turn([Acknowledgment("P/S/orders", READER, each.identity) for each in sent[:1]])
    loop.close()
    loop.stores.close()
    again = service(tmp_path, *QUEUES)
    hosted = again.engine.hosted.by_name
    held = {name: [each.identity.sequence_number for each in one.held] for name, one in hosted.items()}
    again.stores.close()
    assert held == {"P/S/orders": [3], "P/S/bills": []}
