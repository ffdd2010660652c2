"""Which creation of a queue a queue is: drawn when it is created, recorded, and the same after a restart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import pytest

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Inbound,
    Write,
)
from qsctl.core.queue._held import RETIRED_IDENTITIES_MAX
from qsctl.core.queue.insertion import Insertion
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import Enqueued, QueueCreated, Record, Remembered, RemovalCause, Removed, SubscriberCreated
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import (
    NIL_INCARNATION,
    DrawIncarnation,
    Guid,
    Incarnation,
    SampleIdentity,
    counted_incarnations,
)
from qsctl.resource import ResourceKind
from tests.batches import records_of
from tests.core.turns import ORDERS, PERSISTENT, READER, SUBSCRIBER, WRITER, queue


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

    def reject(self, number: int, queue_name: str = "orders") -> list[Record]:
        """Reject a sample as its only consumer, which leaves again."""
        name = f"P/S/{queue_name}"
        self.do(ConsumerJoined(name, READER))
        done = self.do(Acknowledgment(name, READER, SampleIdentity(WRITER, number), AckResponse.REJECTED))
        self.do(ConsumerLeft(name, READER))
        return done

    def replace_queue(self, settings: SharedReaderQueueSettings) -> None:
        """Delete a queue with its store, and create one of its name."""
        self.command(DeleteQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, settings.name)))
        self.records = [each for each in self.records if getattr(each, "queue", "") != f"P/S/{settings.name}"]
        self.command(CreateQueue(SUBSCRIBER, settings))

    def held(self, name: str) -> list[int]:
        """The sequence numbers of what a queue holds, as their producers gave them."""
        return [each.original_identity.sequence_number for each in self.engine.hosted.by_name[f"P/S/{name}"].held]

    def of(self, name: str) -> Incarnation:
        return self.engine.hosted.by_name[f"P/S/{name}"].incarnation


def test_the_first_record_of_a_queue_has_its_incarnation() -> None:
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


DYING = queue("orders", persistence=PERSISTENT, dead_letter_queue="dead")
WITH_DEAD = (DYING, queue("dead", persistence=PERSISTENT, is_dead_letter=True))


def test_a_dead_letter_of_a_deleted_queue_ends_no_sample_of_its_successor() -> None:
    service = Driven(WITH_DEAD)
    service.write(7)
    service.reject(7)
    service.replace_queue(DYING)
    service.write(7)
    assert (service.held("orders"), service.held("dead")) == ([7], [7])
    service.restart()
    assert (service.held("orders"), service.held("dead")) == ([7], [7])
    assert service.engine.hosted.by_name["P/S/orders"].held.next_position == 2


def test_a_dead_letter_of_a_deleted_queue_moves_no_position_of_its_successor() -> None:
    service = Driven(WITH_DEAD)
    for number in range(1, 6):
        service.write(number)
    service.reject(5)
    service.replace_queue(DYING)
    service.write(1)
    service.restart()
    assert service.engine.hosted.by_name["P/S/orders"].held.next_position == 2
    service.write(5)
    assert service.held("orders") == [1, 5], "the letter is a duplicate of nothing here"


def test_a_sample_of_a_queue_created_anew_has_a_dead_letter_of_its_own() -> None:
    service = Driven(WITH_DEAD)
    for _ in range(3):
        service.write(7)
        service.reject(7)
        service.replace_queue(DYING)
    assert service.held("dead") == [7, 7, 7]
    service.restart()
    assert service.held("dead") == [7, 7, 7]


def test_an_identity_that_is_forgotten_and_comes_again_has_a_dead_letter_of_its_own() -> None:
    service = Driven(WITH_DEAD)
    service.write(1)
    service.reject(1)
    service.do(ConsumerJoined("P/S/orders", READER))
    for number in range(2, RETIRED_IDENTITIES_MAX + 3):
        service.write(number)
        service.do(Acknowledgment("P/S/orders", READER, SampleIdentity(WRITER, number), AckResponse.ACCEPTED))
    service.do(ConsumerLeft("P/S/orders", READER))
    service.write(1)
    assert service.held("orders") == [1]
    service.reject(1)
    assert (service.held("orders"), service.held("dead")) == ([], [1, 1])
    service.restart()
    assert (service.held("orders"), service.held("dead")) == ([], [1, 1])


@pytest.mark.parametrize("lost_count", [1, 2])
def test_a_move_to_the_dead_letters_that_a_crash_cut_in_two_is_completed(lost_count: int) -> None:
    service = Driven(WITH_DEAD)
    service.replace_queue(DYING)
    service.write(7)
    service.reject(7)
    own = [each for each in service.records if getattr(each, "queue", "") == "P/S/orders"]
    for record in own[-lost_count:]:
        service.records.remove(record)
    service.restart()
    assert (service.held("orders"), service.held("dead")) == ([], [7])


def test_the_dead_letters_of_two_queues_of_one_topic_are_apart() -> None:
    """A queue may have another name than the one before it, and the same topic: its letters are labelled alike."""
    service = Driven(WITH_DEAD)
    service.write(7)
    service.reject(7)
    service.command(DeleteQueue(ORDERS))
    service.command(CreateQueue(SUBSCRIBER, replace(DYING, name="bills")))
    service.write(7)
    service.restart()
    assert (service.held("bills"), service.held("dead")) == ([7], [7])
    service.reject(7, "bills")
    assert (service.held("bills"), service.held("dead")) == ([], [7, 7])


def test_a_store_of_an_earlier_version_completes_its_moves() -> None:
    service = Driven(WITH_DEAD, keeps_configuration=False)
    service.write(7)
    service.reject(7)
    (dead,) = [each for each in service.records if isinstance(each, Enqueued) and each.queue == "P/S/dead"]
    earlier = msgspec.structs.replace(dead, dead_letter_incarnation=NIL_INCARNATION)
    service.records = [earlier if each is dead else each for each in service.records]
    service.records = [each for each in service.records if not isinstance(each, Remembered | Removed)]
    service.restart()
    assert (service.held("orders"), service.held("dead")) == ([], [7])


def test_what_a_store_has_of_another_incarnation_is_not_restored() -> None:
    """A queue that is not to be restored begins anew in the same store; later it is to be restored."""
    service = Driven(keeps_configuration=False)
    service.write(1)
    service.write(2)
    before = [each for each in service.records if getattr(each, "queue", "") == "P/S/orders"]
    service.records = []
    service.restart()
    service.write(3)
    service.records = [*before, *(each for each in service.records if getattr(each, "queue", "") == "P/S/orders")]
    service.restart()
    assert service.held("orders") == [3]
    service.write(1)
    assert service.held("orders") == [3, 1]


def test_a_position_that_a_dead_letter_has_is_never_used_again() -> None:
    """What brought the sample back is lost: its queue knows the identity as retired, and the letter the position."""
    service = Driven(WITH_DEAD)
    service.write(7)
    service.reject(7)
    (dead,) = service.engine.hosted.by_name["P/S/dead"].held
    inserted = InsertedSample(dead.original_identity, dead.payload or b"")
    assert service.engine.hosted.insert(0, ORDERS, [inserted]) == [Insertion.ENQUEUED]
    service.take()
    service.reject(7)
    assert service.held("dead") == [7, 7]
    own = [each for each in service.records if getattr(each, "queue", "") == "P/S/orders"]
    lost = own[own.index(Removed("P/S/orders", 1, RemovalCause.FAILED_DELIVERY)) + 1 :]
    service.records = [each for each in service.records if each not in lost]
    service.restart()
    assert service.engine.hosted.by_name["P/S/orders"].held.next_position == 3
    service.restart()
    assert service.engine.hosted.by_name["P/S/orders"].held.next_position == 3
    assert (service.held("orders"), service.held("dead")) == ([], [7, 7])


def test_a_position_that_a_dead_letter_has_is_passed_over_while_its_identity_is_held() -> None:
    service = Driven(WITH_DEAD)
    service.write(7)
    kept = [each for each in service.records if getattr(each, "queue", "") == "P/S/orders"]
    service.reject(7)
    (dead,) = service.engine.hosted.by_name["P/S/dead"].held
    service.engine.hosted.insert(0, ORDERS, [InsertedSample(dead.original_identity, dead.payload or b"")])
    service.take()
    service.reject(7)
    of_dead = [each for each in service.records if getattr(each, "queue", "") == "P/S/dead"]
    second = [each for each in of_dead if isinstance(each, Enqueued)][1]
    service.records = [each for each in service.records if not hasattr(each, "queue")]
    service.records += [*kept, of_dead[0], msgspec.structs.replace(second, position=1)]
    for _ in range(2):
        service.restart()
        assert (service.held("orders"), service.held("dead")) == ([7], [7])
        assert service.engine.hosted.by_name["P/S/orders"].held.next_position == 3


def test_counters_of_a_deleted_queue_are_not_those_of_its_successor() -> None:
    """A command that replaces a queue may be killed before it has stored the counters."""
    service = Driven()
    service.write(1)
    service.reject(1)
    service.write(1, "News")
    stored = service.engine.hosted.statistics.snapshot()
    service.replace_queue(queue("orders", persistence=PERSISTENT))
    statistics = service.engine.hosted.statistics
    statistics.restore(stored)
    received = [statistics.status(0, f"P/S/{name}").total.received_message_count for name in ("orders", "news")]
    assert received == [0, 1]
