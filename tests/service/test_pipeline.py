"""What a service in turns stores and restores: queues found on disk are adopted, a disk that refuses stops it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.config.settings import ServiceConfiguration, ServicePersistenceSettings, ServiceQosSettings
from qsctl.core.admin.command import CreateQueue, DeleteQueue
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    CommandReply,
    ConsumerJoined,
    Delivery,
    Inbound,
)
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.core.ready import Ready
from qsctl.core.records import Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import Damaged, InvalidInput, Refused
from qsctl.identity import SampleIdentity, counted_incarnations
from qsctl.resource import ResourceKind
from qsctl.service.run.loop import COMPACT_AFTER_RECORDS, COMPACT_QUIET_AFTER_RECORDS, ServiceLoop
from qsctl.service.run.open_service import DaemonOptions, open_service
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores
from qsctl.storage.base import Sync
from qsctl.storage.sqlite.store import SqliteStorage
from tests.earlier_formats import contents
from tests.service.pipelines import (
    IN_MEMORY,
    ON_DISK,
    ORDERS,
    READER,
    SUBSCRIBER,
    WRITER,
    command,
    messages_of,
    numbers_of,
    payloads_of,
    pipelined,
    queue,
    service,
    writes,
)


@pytest.mark.parametrize("busy", [True, False])
def test_a_store_is_compacted_when_it_is_long_or_when_there_is_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    loop = service(tmp_path, queue())
    compacted: list[int] = []
    pipeline = pipelined(loop)
    monkeypatch.setattr(pipeline, "_compact_in_shares", lambda: iter(compacted.append(1) or ()))
    limit = COMPACT_AFTER_RECORDS if busy else COMPACT_QUIET_AFTER_RECORDS
    pipeline.begin(writes(1))
    pipeline.drain()
    pipeline.rest()
    assert not compacted
    pipeline._record_count = limit - 1
    pipeline.begin(writes(2))
    assert bool(compacted) is busy
    pipeline.rest()
    assert bool(compacted) is busy, "no rest while a turn is not taken"
    pipeline.drain()
    pipeline.rest()
    assert compacted == [1]
    pipeline.close()
    loop.stores.close()


def test_what_was_begun_survives_and_what_was_acknowledged_is_gone(tmp_path: Path) -> None:
    loop = service(tmp_path, queue())
    pipeline = pipelined(loop)
    pipeline.begin(writes(*range(10)))
    pipeline.begin([ConsumerJoined("P/S/orders", READER, unacked_threshold=3)])
    deliveries = [each for each in messages_of(pipeline.drain()) if isinstance(each, Delivery)]
    pipeline.begin([Acknowledgment(each.queue, READER, each.identity) for each in deliveries])
    pipeline.close()
    loop.stores.close()
    again = service(tmp_path, queue())
    found = again.turn([ConsumerJoined("P/S/orders", READER)]).messages
    assert sorted(payloads_of(found)) == [b"%d" % number for number in range(4, 10)]  # type: ignore[type-var]
    again.stores.close()


@pytest.mark.parametrize("quick_sync_s", [0, 10])
def test_a_disk_that_refuses_stops_the_pipeline(
    loop: ServiceLoop, monkeypatch: pytest.MonkeyPatch, quick_sync_s: float
) -> None:
    def refuse(self: Stores, turns: Sequence[Ready]) -> Sync | None:
        return fail

    def fail() -> None:
        raise Damaged("the disk refuses")

    monkeypatch.setattr(Stores, "write", refuse)
    pipeline = pipelined(loop, quick_sync_s=quick_sync_s)
    with pytest.raises(Damaged, match="the disk refuses") if quick_sync_s else contextlib.nullcontext():
        pipeline.begin(writes(1))
    for call in (pipeline.drain, pipeline.pop_finished, lambda: pipeline.begin(writes(2))):
        with pytest.raises(Damaged, match="the disk refuses"):
            call()
    pipeline.close()


def test_a_queue_created_again_finds_the_samples_that_an_earlier_run_left(tmp_path: Path) -> None:
    first = service(tmp_path)
    pipeline = pipelined(first)
    pipeline.begin([command(CreateQueue(SUBSCRIBER, queue())), *writes(1, 2)])
    assert numbers_of(messages_of(pipeline.drain())) == [1, 2]
    pipeline.close()
    first.stores.close()
    second = service(tmp_path)
    pipeline = pipelined(second)
    pipeline.begin([command(CreateQueue(SUBSCRIBER, queue())), *writes(3), ConsumerJoined("P/S/orders", READER)])
    messages = messages_of(pipeline.drain())
    assert payloads_of(messages) == [b"1", b"2", b"3"]
    pipeline.close()
    second.stores.close()


def test_a_queue_that_is_not_to_be_restored_begins_empty(tmp_path: Path) -> None:
    settings = queue(persistence=PersistenceSettings(PersistenceKind.PERSISTENT, restore=False))
    first = service(tmp_path, settings)
    first.turn(writes(1, 2))
    first.stores.close()
    second = service(tmp_path, settings)
    assert payloads_of(second.turn([*writes(3), ConsumerJoined("P/S/orders", READER)]).messages) == [b"3"]
    second.stores.close()


@pytest.mark.parametrize("persistence", [IN_MEMORY, ON_DISK], ids=["log", "database"])
def test_a_start_that_damage_refuses_empties_no_queue(tmp_path: Path, persistence: PersistenceSettings) -> None:
    """The error states that nothing was changed: a copy that is put back is of all queues."""
    bills, orders = queue("bills", ON_DISK), queue(persistence=replace(persistence, restore=False))
    first = service(tmp_path, orders, bills)
    first.turn([*writes(1, 2), *writes(3, 4, topic="Bills")])
    first.stores.close()
    (file,) = tmp_path.glob("QSBills@*.db")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2 :] = bytes(len(damaged) - len(damaged) // 2)
    file.write_bytes(damaged)
    before = contents(tmp_path)
    with pytest.raises(Damaged, match="nothing was changed"):
        service(tmp_path, orders, bills)
    assert contents(tmp_path) == before


def test_a_start_that_damage_refuses_drops_no_configuration(tmp_path: Path) -> None:
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=(queue("bills", ON_DISK),)),))
    kept = ServiceConfiguration(
        "app",
        ServiceSettings("app", (participant,)),
        filesystem=FilesystemSettings(synchronization=Synchronization.FULL),
        service_qos=ServiceQosSettings(ServicePersistenceSettings(PersistenceKind.PERSISTENT)),
    )
    options = DaemonOptions(storage_directory=tmp_path)
    engine, stores = open_service(kept, options)
    ServiceLoop(engine, stores).turn(writes(1, 2, topic="Bills"))
    stores.close()
    (file,) = tmp_path.glob("QSBills@*.db")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    before = contents(tmp_path)
    with pytest.raises(Damaged, match="nothing was changed"):
        open_service(
            replace(kept, service_qos=ServiceQosSettings(replace(kept.service_qos.persistence, restore=False))), options
        )
    assert contents(tmp_path) == before


def test_a_volatile_queue_leaves_no_file(tmp_path: Path) -> None:
    loop = service(tmp_path, queue(persistence=PersistenceSettings()))
    assert numbers_of(loop.turn(writes(1)).messages) == [1]
    assert list(tmp_path.iterdir()) == []
    loop.stores.close()


def test_a_dead_letter_is_stored_before_it_leaves_its_queue(tmp_path: Path) -> None:
    dead = SharedReaderQueueSettings("dead", "Dead", is_dead_letter=True, persistence=ON_DISK)
    orders = SharedReaderQueueSettings("orders", "Orders", persistence=ON_DISK, dead_letter_queue="dead")
    loop = service(tmp_path, orders, dead)
    order: list[str] = []
    for name, store in loop.stores.queues.items():
        assert isinstance(store, SqliteStorage)

        def append(records: Sequence[Record], name: str = name, real: Callable[..., None] = store.append) -> None:
            order.append(f"{name} begun")
            real(records)
            order.append(f"{name} durable")

        store.append = append  # type: ignore[method-assign]
    loop.turn([*writes(1), ConsumerJoined("P/S/orders", READER)])
    order.clear()
    loop.turn([Acknowledgment("P/S/orders", READER, SampleIdentity(WRITER, 1), 0)])  # type: ignore[arg-type]
    assert order == ["P/S/dead begun", "P/S/dead durable", "P/S/orders begun", "P/S/orders durable"]
    loop.stores.close()
    again = service(tmp_path, orders, dead)
    assert payloads_of(again.turn([ConsumerJoined("P/S/dead", READER)]).messages) == [b"1"]
    again.stores.close()


def test_two_queues_never_share_a_file(tmp_path: Path) -> None:
    twin = DomainParticipantSettings("P2", 0, (SharedSubscriberSettings("S", queues=(queue(),)),))
    one = DomainParticipantSettings("P1", 0, (SharedSubscriberSettings("S", queues=(queue(),)),))
    engine = ServiceEngine(
        ServiceSettings("app", (one, twin)), started_at=1, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY
    )
    stores = Stores(tmp_path, FilesystemSettings(), "app", keeps_service_state=False)
    with pytest.raises(Refused, match="P1/S/orders and P2/S/orders would share the file"):
        restore(engine, stores, 1)
    stores.close()


def test_the_directory_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        Stores(tmp_path / "nowhere", FilesystemSettings(), "app", keeps_service_state=True)


def test_the_configuration_survives_where_it_is_kept(tmp_path: Path) -> None:
    loop = service(tmp_path, keeps_state=True)
    loop.turn([command(CreateQueue(SUBSCRIBER, queue()))])
    loop.stores.close()
    again = service(tmp_path, keeps_state=True)
    assert [resource.name for resource in again.engine.hosted.queues()] == ["orders"]
    deleted = DeleteQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "orders"))
    (reply,) = again.turn([command(deleted)]).messages
    assert isinstance(reply, CommandReply)
    assert reply.reply.retcode is ReturnCode.OK
    again.stores.close()
    last = service(tmp_path, keeps_state=True)
    assert not last.engine.hosted.queues()
    last.stores.close()
    assert [path.name for path in tmp_path.glob("*.db")] == ["QSservice@app.db"]
    last.stores.close()


def test_a_removal_is_synced_with_the_next_group_or_when_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told of it: a crash before only brings the sample again, marked."""
    loop = service(tmp_path, queue())
    pipeline = pipelined(loop)
    syncs: list[int] = []
    real = os.fdatasync

    def counted(descriptor: int) -> None:
        syncs.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)

    def syncs_of(inbox: list[Inbound]) -> int:
        syncs.clear()
        pipeline.begin(inbox)
        pipeline.drain()
        return len(syncs)

    pipeline.begin([ConsumerJoined("P/S/orders", READER)])
    assert syncs_of(writes(1, 2, 3)) == 1, "data and metadata are one append"
    assert syncs_of([Acknowledgment("P/S/orders", READER, SampleIdentity(WRITER, 1))]) == 0
    assert syncs_of(writes(4)) == 1
    assert syncs_of([Acknowledgment("P/S/orders", READER, SampleIdentity(WRITER, 2))]) == 0
    syncs.clear()
    pipeline.rest()
    assert len(syncs) == 1, "metadata"
    pipeline.rest()
    assert len(syncs) == 1, "nothing is left to settle"
    pipeline.close()
    loop.stores.close()
    again = service(tmp_path, queue())
    assert [sample.identity.sequence_number for sample in again.engine.hosted.samples(ORDERS)] == [3, 4]
    again.stores.close()


def test_a_disk_that_refuses_to_compact_the_service_s_state_ends_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = Stores(tmp_path, FilesystemSettings(), "app", keeps_service_state=True)
    error = Damaged("the disk refuses it")

    def refuse(_: object) -> None:
        raise error

    assert stores.service is not None
    monkeypatch.setattr(type(stores.service), "worth_compacting", lambda _: True)
    monkeypatch.setattr(type(stores.service), "compact", lambda _, records: refuse(records))
    assert list(stores.compact_in_shares(lambda _: iter(()), [])) == []
    assert stores.failures.error is error
    stores.close()
