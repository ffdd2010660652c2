"""Which creation of a queue a queue is: drawn when it is created, recorded, and the same after a restart."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import CommandRequest, Inbound, Write
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import QueueCreated, Record, Remembered, SubscriberCreated
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import (
    NIL_INCARNATION,
    DrawIncarnation,
    Guid,
    Incarnation,
    SampleIdentity,
    counted_incarnations,
)
from tests.batches import records_of
from tests.core.turns import ORDERS, PERSISTENT, SUBSCRIBER, WRITER, queue


@dataclass
class Driven:
    """A service that is restarted from what it recorded."""

    queues: tuple[SharedReaderQueueSettings, ...] = (queue("orders", persistence=PERSISTENT), queue("news"))
    draw: DrawIncarnation = field(default_factory=counted_incarnations)
    keeps_configuration: bool = True
    records: list[Record] = field(default_factory=list)
    request_count: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        subscriber = SharedSubscriberSettings("S", (), self.queues)
        settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
        self.engine = ServiceEngine(settings, started_at=0, draw=self.draw, journal=Journal.PERSISTENT_ONLY)
        of_service = [each for each in self.records if not hasattr(each, "queue")]
        of_queues = [each for each in self.records if hasattr(each, "queue")]
        self.engine.restore(0, [*(of_service if self.keeps_configuration else ()), *of_queues])
        self.take()

    def take(self) -> list[Record]:
        taken = records_of(self.engine.take_ready())
        self.records += taken
        return taken

    def do(self, message: Inbound) -> list[Record]:
        self.engine.receive(0, message)
        self.engine.advance(0)
        return self.take()

    def command(self, command: CreateQueue | CreateSubscriber | DeleteQueue) -> list[Record]:
        self.request_count += 1
        return self.do(CommandRequest(SampleIdentity(Guid(b"a" * 16), self.request_count), "svc", command))

    def write(self, number: int, topic: str = "Orders") -> list[Record]:
        return self.do(Write("P", topic, SampleIdentity(WRITER, number), b"x"))

    def of(self, name: str) -> Incarnation:
        return self.engine.hosted.by_name[f"P/S/{name}"].incarnation


def test_the_first_record_of_a_queue_says_which_creation_it_is() -> None:
    service = Driven()
    first, *_ = service.write(1)
    assert first == Remembered("P/S/orders", 1, (), service.of("orders"))
    assert not any(isinstance(each, Remembered) for each in service.write(2))


def test_a_restart_keeps_the_incarnation_of_what_it_restores() -> None:
    service = Driven(keeps_configuration=False)
    service.write(1)
    orders, news = service.of("orders"), service.of("news")
    service.restart()
    assert service.of("orders") == orders
    assert service.of("news") != news, "its positions begin again"


def test_a_stored_configuration_keeps_the_incarnation_of_a_queue_that_had_no_sample() -> None:
    service = Driven()
    orders, news = service.of("orders"), service.of("news")
    service.restart()
    assert service.of("orders") == orders
    assert service.of("news") != news


def test_a_queue_deleted_and_created_is_another_one_and_stays_it() -> None:
    service = Driven()
    service.write(1)
    orders = service.of("orders")
    service.command(DeleteQueue(ORDERS))
    create = CreateQueue(SUBSCRIBER, queue("orders", persistence=PERSISTENT))
    (created,) = service.command(create)
    again = service.of("orders")
    assert again != orders
    assert isinstance(created, QueueCreated)
    assert created.incarnation == again
    service.records = [each for each in service.records if getattr(each, "queue", "") != "P/S/orders"]
    service.restart()
    assert service.of("orders") == again
    service.write(1)
    service.records = list(service.engine.snapshot())
    service.restart()
    assert service.of("orders") == again


def test_an_implicit_reply_queue_is_created_with_its_owner() -> None:
    service = Driven()
    service.command(CreateQueue(SUBSCRIBER, queue("asked", reply_type="Text", persistence=PERSISTENT)))
    assert service.of("askedReply") == service.of("asked")
    asked = service.of("asked")
    service.restart()
    assert (service.of("asked"), service.of("askedReply")) == (asked, asked)


def test_a_subscriber_and_its_queues_are_one_creation() -> None:
    service = Driven()
    settings = SharedSubscriberSettings("T", (), (queue("one", persistence=PERSISTENT),))
    (created,) = service.command(CreateSubscriber(SUBSCRIBER.parent, settings))
    assert isinstance(created, SubscriberCreated)
    assert service.engine.hosted.by_name["P/T/one"].incarnation == created.incarnation
    service.records = list(service.engine.snapshot())
    service.restart()
    assert service.engine.hosted.by_name["P/T/one"].incarnation == created.incarnation
    assert service.engine.hosted.started().incarnations["P/T"] == created.incarnation


def test_records_of_an_earlier_version_are_of_the_nil_incarnation() -> None:
    service = Driven(keeps_configuration=False)
    service.write(1)
    service.records = [each for each in service.records if not isinstance(each, Remembered)]
    service.restart()
    assert service.of("orders") == NIL_INCARNATION
    assert [type(each).__name__ for each in service.write(2)] == ["Enqueued"]


def test_an_earlier_version_s_records_decode() -> None:
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Record).decode
    assert decode(encode((5, "P/S/orders", 3, ()))) == Remembered("P/S/orders", 3, ())
    created = QueueCreated("P", "S", queue("orders"), Incarnation(7))
    *known, incarnation = msgspec.to_builtins(created)
    assert incarnation == 7
    assert decode(encode(known)) == QueueCreated("P", "S", queue("orders"))
