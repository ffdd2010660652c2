"""A storage that syncs late: the simulator acknowledges in the order in which the live service does."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from qsctl.core.messages import Inbound, Outbound, WriteAcknowledgment
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.core.ready import Ready
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.turn import Turn
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS
from qsctl.service.stores.stores import Stores
from qsctl.sim.scenario.scenario import (
    ConstantArrivals,
    ConstantSize,
    Model,
    PoissonArrivals,
    Scenario,
    Workload,
    WorkloadConsumer,
    WorkloadProducer,
)
from qsctl.sim.service.run import SharedReaderQueueRun
from qsctl.storage.base import Sync
from tests.service.pipelines import pipelined, service

PERSISTENT = PersistenceSettings(PersistenceKind.PERSISTENT)
QUEUES = (
    SharedReaderQueueSettings("orders", "Orders", type_name="X", persistence=PERSISTENT),
    SharedReaderQueueSettings("bills", "Bills", type_name="X", persistence=PERSISTENT),
    SharedReaderQueueSettings("news", "News", type_name="X"),
)


def scenario(sync_ns: int) -> Scenario:
    subscriber = SharedSubscriberSettings("S", (), QUEUES)
    producers = tuple(
        WorkloadProducer(queue.topic_name, PoissonArrivals(900.0), size=ConstantSize(100)) for queue in QUEUES
    )
    consumers = (WorkloadConsumer("orders", ConstantArrivals(MILLISECOND_NS)),)
    settings = ServiceSettings("app", (DomainParticipantSettings("P", 0, (subscriber,)),))
    workload = Workload(settings, producers, consumers, delay_ns=50_000, sync_ns=sync_ns)
    return Scenario("late", Model.SHARED_READER_QUEUE, horizon_ns=60 * MILLISECOND_NS, workload=workload)


def acknowledgments(messages: Sequence[Outbound]) -> list[tuple[str, int]]:
    return [(each.queue, each.identity.sequence_number) for each in messages if isinstance(each, WriteAcknowledgment)]


class Trace:
    """What the simulated driver did, in order: what it received, when a sync was over, what was acknowledged."""

    def __init__(self, run: SharedReaderQueueRun, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[str, Any]] = []
        receive, to_send, report = Turn.receive, Turn.to_send, SharedReaderQueueRun._report_durable

        def received(turn: Turn, messages: Sequence[Inbound] = ()) -> None:
            if messages:
                self.steps.append(("receive", list(messages)))
            receive(turn, messages)

        def reported(run: SharedReaderQueueRun, group: Any) -> None:
            if any(ready.batches for ready in group.turns):
                self.steps.append(("synced", None))
            report(run, group)

        def sent(turn: Turn) -> Any:
            released = to_send(turn)
            found = [each for one in released for each in acknowledgments(one.messages)]
            if found:
                self.steps.append(("acknowledged", found))
            return released

        monkeypatch.setattr(Turn, "receive", received)
        monkeypatch.setattr(Turn, "to_send", sent)
        monkeypatch.setattr(SharedReaderQueueRun, "_report_durable", reported)
        run.step(60 * MILLISECOND_NS)
        monkeypatch.undo()


class Disk:
    """Syncs that are over when they are let through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._let_through = threading.Semaphore(0)
        self._is_over = threading.Event()
        real = Stores.write

        def write(stores: Stores, turns: Sequence[Ready]) -> Sync | None:
            sync = real(stores, turns)
            has_records = any(ready.batches for ready in turns)

            def held() -> None:
                assert self._let_through.acquire(timeout=30)
                if sync is not None:
                    sync()

            return held if has_records else sync

        monkeypatch.setattr(Stores, "write", write)

    def note(self) -> None:
        self._is_over.set()

    def finish_sync(self) -> None:
        self._is_over.clear()
        self._let_through.release()
        assert self._is_over.wait(30)


def test_the_simulator_acknowledges_in_the_order_of_the_live_service_when_syncs_are_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace(SharedReaderQueueRun(scenario(3 * MILLISECOND_NS), 0, LogLevel.COUNTERS), monkeypatch)
    simulated = [each for what, found in trace.steps if what == "acknowledged" for each in found]
    assert len(simulated) > 100
    first = service(tmp_path, *QUEUES)
    disk = Disk(monkeypatch)
    loop = pipelined(first, on_finished=disk.note, quick_sync_s=0)
    live: list[tuple[str, Any]] = []
    for what, messages in trace.steps:
        if what == "receive":
            loop.begin(messages)
        elif what == "synced":
            disk.finish_sync()
        else:
            continue
        found = [each for one in loop.pop_finished() for each in acknowledgments(one.messages)]
        live.append((what, messages))
        if found:
            live.append(("acknowledged", found))
    assert live == trace.steps
    persistent = [name for name, _ in simulated if name != "P/S/news"]
    assert 0 < len(persistent) < len(simulated)
    for _ in range(1_000):
        disk._let_through.release()
    loop.close()
    loop.stores.close()


def test_what_arrived_is_logged_whether_it_was_synced_at_the_end_or_not() -> None:
    arrived = {}
    for sync_ns in (0, 3 * MILLISECOND_NS):
        run = SharedReaderQueueRun(scenario(sync_ns), 0, LogLevel.COUNTERS)
        run.step(60 * MILLISECOND_NS)
        run.finish()
        counters = run.counters()
        arrived[sync_ns] = dict(zip(counters["queue"], map(int, counters["arrived_messages"]), strict=True))
    assert arrived[0] == arrived[3 * MILLISECOND_NS]
    assert min(arrived[0].values()) > 20
