"""Turns ahead of the disk: nothing leaves before it is stored, in order, and only so much waits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from qsctl.core.admin.command import Shutdown
from qsctl.core.messages import (
    CommandReply,
    ConsumerJoined,
    WriteAcknowledgment,
)
from qsctl.service.run.loop import ServiceLoop
from tests.patience import eventually
from tests.service.pipelines import (
    READER,
    command,
    hold_syncs,
    messages_of,
    numbers_of,
    payloads_of,
    pipelined,
    queue,
    service,
    writes,
)


def test_no_acknowledgment_leaves_before_its_sample_is_stored(
    loop: ServiceLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, let_through = threading.Event(), threading.Event()
    hold_syncs(monkeypatch, entered, let_through)
    finished = threading.Event()
    pipeline = pipelined(loop, on_finished=finished.set, quick_sync_s=0)
    pipeline.begin(writes(1, 2))
    assert entered.wait(10)
    pipeline.begin(writes(3))
    assert pipeline.pop_finished() == []
    assert not pipeline.is_idle
    let_through.set()
    assert finished.wait(10)
    assert numbers_of(messages_of(pipeline.drain())) == [1, 2, 3]
    assert pipeline.is_idle
    pipeline.close()


@pytest.mark.parametrize("by", ["turns", "records"])
def test_so_much_may_wait_for_its_commit_and_no_more(
    loop: ServiceLoop, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    entered, let_through = threading.Event(), threading.Event()
    hold_syncs(monkeypatch, entered, let_through)
    bounds = {"turns_ahead_max": 4 if by == "turns" else 100, "records_ahead_max": 6 if by == "records" else 100}
    pipeline = pipelined(loop, quick_sync_s=0, **bounds)
    begun: list[int] = []

    def work() -> None:
        for number in range(8):
            pipeline.begin(writes(2 * number, 2 * number + 1))
            begun.append(number)

    worker = threading.Thread(target=work)
    worker.start()
    assert entered.wait(10)
    assert eventually(lambda: len(begun) == 4)
    worker.join(0.2)
    assert len(begun) == 4, "one is being synced, three wait, and the next waits itself"
    let_through.set()
    worker.join(10)
    assert numbers_of(messages_of(pipeline.drain())) == list(range(16))
    pipeline.close()


def test_what_rests_on_nothing_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = service(tmp_path, queue())
    let_through = threading.Event()
    hold_syncs(monkeypatch, threading.Event(), let_through)
    pipeline = pipelined(loop, quick_sync_s=0)
    pipeline.begin(writes(1))
    pipeline.begin([command(Shutdown())])
    (reply,) = messages_of(pipeline.pop_finished())
    assert isinstance(reply, CommandReply)
    let_through.set()
    (answer,) = messages_of(pipeline.drain())
    assert isinstance(answer, WriteAcknowledgment)
    pipeline.begin(writes(1))
    (done,) = pipeline.pop_finished()
    assert numbers_of(done.messages) == [1], "a duplicate is answered without a commit"
    pipeline.close()
    loop.stores.close()


@pytest.mark.parametrize("quick_sync_s", [0, 10])
def test_turns_finish_in_their_order_with_every_payload(loop: ServiceLoop, quick_sync_s: float) -> None:
    pipeline = pipelined(loop, quick_sync_s=quick_sync_s)
    pipeline.begin([ConsumerJoined("P/S/orders", READER)])
    for number in range(200):
        pipeline.begin(writes(number))
    messages = messages_of(pipeline.drain())
    assert numbers_of(messages) == list(range(200))
    assert payloads_of(messages) == [b"%d" % number for number in range(200)]
    pipeline.close()
