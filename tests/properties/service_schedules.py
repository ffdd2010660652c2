"""A whole service against a plain model of it, by schedules of random steps: see `test_service_against_model`.

Queues are deleted, created again under their names and under others, replaced, pruned, adopted from what an earlier run
left, and restarted, in the middle of a move to the dead letters too; identities come again, within the window in which
they are remembered and after it. The model knows each creation of a queue as a life of its own; nothing of one life
concerns another.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any, Final

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue, DeleteSubscriber
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    SampleFlag,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.queue import _held as held_module
from qsctl.core.queue.insertion import Insertion
from qsctl.core.queue.sample import Sample
from qsctl.core.queue.settings import (
    DistributionSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import Enqueued, QueueDeleted, Record, Removed, SubscriberDeleted
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import NIL_GUID, Guid, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.resource import ResourceKind, parse_resource
from tests.properties.plain_queue import PlainQueue, PlainSample

REMEMBERED_MAX: Final = 3
"""So few, so that identities are forgotten and come again."""
WRITER = Guid(b"w" * 16)
REQUESTERS = (NIL_GUID, Guid(b"1" * 16), Guid(b"2" * 16))
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
NUMBERS = 6
PERSISTENT = PersistenceSettings(PersistenceKind.PERSISTENT)


def settings_of(name: str, chance: Random) -> SharedReaderQueueSettings:
    """A queue as it is created under this name; some settings are drawn."""
    given = SharedReaderQueueSettings(
        name,
        {"bills": "Orders", "askedReply": "AskedReply"}.get(name, name.capitalize()),
        distribution=DistributionSettings(unacked_threshold=chance.choice((-1, 0, 1))),
        redelivery=RedeliverySettings(chance.choice((0, 0, 1))),
        persistence=PersistenceSettings() if name == "news" else PERSISTENT,
        limits=ResourceLimitSettings(max_count=chance.choice((-1, -1, 3))),
    )
    if name == "dead":
        return replace(given, is_dead_letter=True, limits=ResourceLimitSettings(), redelivery=RedeliverySettings(9))
    if name == "asked":
        return replace(given, reply_type="Text", reply_topic="AskedReply")
    return replace(given, dead_letter_queue="dead")


@dataclass(frozen=True)
class PlainLetter:
    """A dead letter of the model."""

    life: int
    position: int
    number: int
    payload: bytes
    redelivered: bool


class PlainLife(PlainQueue):
    """One creation of a queue."""

    def __init__(self, number: int, given: SharedReaderQueueSettings, letters: list[PlainLetter]) -> None:
        super().__init__(given)
        self.number = number
        self.letters = letters
        self.remembered_max = REMEMBERED_MAX

    def lay_down(self, sample: PlainSample) -> None:
        """A dead letter enters the queue that all have in common."""
        letter = PlainLetter(self.number, sample.position, sample.number, sample.payload, sample.redelivered)
        self.letters.append(letter)

    def insert(self, now: int, letter: PlainLetter) -> Insertion:
        """A command brings a dead letter back."""
        held = self.find(letter.number)
        if held is not None:
            return Insertion.HELD_ALREADY if held.payload == letter.payload else Insertion.HELD_ANOTHER
        if not self.has_room():
            return Insertion.NO_ROOM
        if letter.number in self.retired:
            self.retired.remove(letter.number)
        self.enter(PlainSample(letter.number, INFINITE_NS, payload=letter.payload, redelivered=True))
        self.dispatch(now)
        return Insertion.ENQUEUED


@dataclass
class Run:
    """One schedule: the service, its stores, and the model."""

    seed: int
    now: int = 0
    records: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """The stores: of queues by full name, the service's under the empty one."""
    compacted: dict[str, list[Record]] = field(default_factory=dict)
    """What the last compaction left of a store."""
    letters: list[PlainLetter] = field(default_factory=list)
    lives: dict[str, PlainLife] = field(default_factory=dict)
    left: dict[str, PlainLife] = field(default_factory=dict)
    """Queues that are not hosted any more, and whose stores are there."""
    known: dict[tuple[str, Incarnation], int] = field(default_factory=dict)
    """Which life an incarnation was; one is never another's."""
    consumers: dict[Guid, tuple[str, Guid]] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        drawn, self.numbers, self.payloads = Random(-self.seed - 1), count(1), count(1)
        self.requests = count(1)
        self.draw = lambda: Incarnation(drawn.getrandbits(62) + 1)
        self.keeps_configuration = self.chance.random() < 0.5
        names = ("orders", "dead", "news", "asked")
        queues = tuple(settings_of(name, self.chance) for name in names)
        self.configured = SharedSubscriberSettings("S", (), queues)
        self.settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (self.configured,)),))
        self.start()
        for queue in self.configured.queues:
            self.begin_life(queue)
        self.compare()

    # The service.

    def start(self) -> None:
        """Begin with what the stores hold."""
        self.engine = ServiceEngine(self.settings, started_at=self.now, draw=self.draw, journal=Journal.PERSISTENT_ONLY)
        if not self.keeps_configuration:
            self.records[""].clear()
        self.engine.replay_all(self.records[""])
        for name in self.engine.hosted.by_name:
            self.engine.replay_all(self.records[name])
        self.engine.finish_restore(self.now)

    def take(self) -> list[Any]:
        """Store what the service recorded; give its messages."""
        ready = self.engine.take_ready()
        for batch in ready.batches:
            store = self.records[batch.stream]
            assert batch.first_index == len(store) + 1 or not batch.stream, (batch.stream, batch.first_index)
            store += batch.records
        for record in ready.service_records:
            if isinstance(record, QueueDeleted):
                self.delete_store(record.name)
                if record.name == "asked":
                    self.delete_store("askedReply")
            elif isinstance(record, SubscriberDeleted):
                for name in [each for each in self.records if each]:
                    del self.records[name]
        return ready.messages

    def delete_store(self, name: str) -> None:
        self.records.pop(f"P/S/{name}", None)

    def command(self, command: Any) -> None:
        request = CommandRequest(SampleIdentity(Guid(b"a" * 16), next(self.requests)), "svc", command)
        self.engine.receive(self.now, request)
        while self.engine.answers.is_answering:
            self.engine.advance(self.now)

    # The model.

    def begin_life(self, given: SharedReaderQueueSettings) -> PlainLife:
        life = self.lives[given.name] = PlainLife(next(self.numbers), given, self.letters)
        if given.reply_type:
            reply = replace(given, name=f"{given.name}Reply", topic_name=given.reply_topic, reply_type="")
            self.lives[reply.name] = PlainLife(next(self.numbers), reply, self.letters)
        return life

    def end_life(self, name: str) -> None:
        for each in (name, f"{name}Reply"):
            if self.lives.pop(each, None) is not None:
                self.consumers = {guid: at for guid, at in self.consumers.items() if at[0] != each}
        if name == "dead":
            self.letters.clear()

    # What can happen.

    def step(self) -> None:
        names = ["write"] * 8 + ["settle"] * 8 + ["join"] * 3 + ["leave"] * 2 + ["requeue", "unearth", "restart"]
        names += ["delete", "create", "create", "replace"] + ["cut", "prune", "anew"] * (self.chance.random() < 0.3)
        name = self.chance.choice(names)
        self.steps.append(name)
        self.now += 1
        getattr(self, f"do_{name}")()
        self.compare()

    def do_write(self) -> None:
        topic = self.chance.choice(("Orders", "Orders", "Orders", "News", "AskedReply"))
        number, payload = self.chance.randint(1, NUMBERS), b"%d" % next(self.payloads)
        address = self.chance.choice(REQUESTERS) if topic == "AskedReply" else NIL_GUID
        identity = SampleIdentity(WRITER, number)
        self.engine.receive(self.now, Write("P", topic, identity, payload, related_source_guid=address))
        for life in self.lives.values():
            if life.given.topic_name == topic:
                life.write(self.now, number, INFINITE_NS, payload, address)

    def do_join(self) -> None:
        name = self.chance.choice([name for name in self.lives if name != "dead"] or ["orders"])
        source = self.chance.choice(REQUESTERS) if name == "askedReply" else NIL_GUID
        guid = Guid(bytes([65 + self.chance.randint(0, 4)]) * 15 + bytes([sorted(ALL_NAMES).index(name)]))
        if guid in self.consumers or name not in self.lives:
            return
        self.consumers[guid] = (name, source)
        self.engine.receive(self.now, ConsumerJoined(f"P/S/{name}", guid, source))
        self.lives[name].join(self.now, guid, source)

    def do_leave(self) -> None:
        if self.consumers:
            guid = self.chance.choice(sorted(self.consumers))
            name, _ = self.consumers.pop(guid)
            hands_back = self.chance.random() < 0.5
            self.engine.receive(self.now, ConsumerLeft(f"P/S/{name}", guid, hands_back))
            self.lives[name].leave(self.now, guid, hands_back)

    def do_settle(self) -> None:
        sent = [(life, sample) for life in self.lives.values() for sample in life.samples if sample.holder is not None]
        if sent:
            life, sample = self.chance.choice(sent)
            response = self.chance.choice((AckResponse.ACCEPTED, AckResponse.REJECTED, AckResponse.REJECTED))
            guid = sample.holder
            assert guid is not None
            identity = SampleIdentity(WRITER, sample.number)
            self.engine.receive(self.now, Acknowledgment(f"P/S/{life.given.name}", guid, identity, response))
            life.settle(self.now, guid, sample.number, response)

    def do_unearth(self) -> None:
        """The oldest dead letters leave."""
        if "dead" in self.lives:
            going = list(self.engine.hosted.by_name["P/S/dead"].held)[: self.chance.randint(1, 2)]
            self.engine.hosted.flush(self.now, self.resource("dead"), going)
            del self.letters[: len(going)]

    def do_requeue(self) -> None:
        """A dead letter goes back to the queue of its topic, whichever has it now."""
        takers = [name for name in ("orders", "bills") if name in self.lives]
        if not self.letters or not takers:
            return
        at = self.chance.randrange(len(self.letters))
        letter, dead = self.letters[at], list(self.engine.hosted.by_name["P/S/dead"].held)[at]
        resource = self.resource(takers[0])
        identity = SampleIdentity(WRITER, letter.number)
        (done,) = self.engine.hosted.insert(self.now, resource, [InsertedSample(identity, dead.payload or b"")])
        assert done is self.lives[takers[0]].insert(self.now, letter), done
        if done.is_done:
            assert self.engine.hosted.flush(self.now, self.resource("dead"), [dead]) == 1
            del self.letters[at]

    def do_delete(self) -> None:
        users = [name for name, life in self.lives.items() if life.given.dead_letter_queue]
        names = [name for name in self.lives if name != "askedReply" and not (name == "dead" and users)]
        if names:
            self.delete(self.chance.choice(names))

    def delete(self, name: str) -> None:
        self.command(DeleteQueue(self.resource(name)))
        self.end_life(name)

    def do_create(self) -> None:
        absent = [name for name in ("dead", "orders", "bills", "news", "asked") if name not in self.lives]
        if absent:
            self.create(self.chance.choice(absent))

    def create(self, name: str) -> None:
        given = settings_of(name, self.chance)
        if given.dead_letter_queue and "dead" not in self.lives:
            given = replace(given, dead_letter_queue="")
        if any(life.given.topic_name == given.topic_name for life in self.lives.values()):
            return
        self.command(CreateQueue(SUBSCRIBER, given))
        self.begin_life(given)
        for each in (name, f"{name}Reply"):
            if each in self.left:
                self.adopt(each)

    def adopt(self, name: str) -> None:
        """A queue is created whose samples an earlier run left: as the driver does, see `service.restore.adopt`."""
        life, given = self.left.pop(name), self.lives[name].given
        full_name = f"P/S/{name}"
        stored, self.records[full_name] = self.records[full_name], []
        self.take()
        self.records[full_name] = stored
        self.engine.replay_all(stored)
        self.engine.finish_restore(self.now)
        life.given, life.letters, self.lives[name] = given, self.letters, life
        life.restart(self.now)

    def do_replace(self) -> None:
        names = [name for name in self.lives if name not in ("dead", "askedReply")]
        if names:
            name = self.chance.choice(names)
            self.delete(name)
            self.compare()
            self.create(name)

    def do_prune(self) -> None:
        """What the configuration does not have is deleted."""
        if "bills" in self.lives:
            self.delete("bills")

    def do_anew(self) -> None:
        """The subscriber is deleted with all its queues, and created again."""
        self.command(DeleteSubscriber(SUBSCRIBER))
        for name in list(self.lives):
            self.end_life(name)
        self.take()
        self.left.clear()
        self.command(CreateSubscriber(SUBSCRIBER.parent, self.configured))
        for queue in self.configured.queues:
            self.begin_life(queue)

    def do_cut(self) -> None:
        """The process is killed when a dead letter is stored and what the queue says of its sample is not."""
        # Where the restart does not host the queue, its letter may be consumed before the queue is adopted, and the
        # sample comes again: at least once.
        for name in ("orders", "bills") if self.keeps_configuration else ("orders",):
            store = self.records.get(f"P/S/{name}", [])
            if "dead" in self.lives and store and isinstance(store[-1], Removed) and self.letters:
                last = self.letters[-1]
                life = self.lives.get(name)
                if life is None or (last.life, last.position) != (life.number, store[-1].position):
                    continue
                del store[-1]
                # What a compaction left is on the disk as a whole.
                compacted = self.compacted.get(f"P/S/{name}")
                whole = len(compacted) if compacted is not None and store[: len(compacted)] == compacted else 0
                while (
                    len(store) > whole
                    and self.chance.random() < 0.7
                    and getattr(store[-1], "position", None) == last.position
                ):
                    was_begun = isinstance(store[-1], Enqueued)
                    del store[-1]
                    if was_begun:
                        break
                break
        self.do_restart()

    def do_restart(self) -> None:
        """Lose everything but the stores, and perhaps the configuration; perhaps they were compacted before."""
        if self.chance.random() < 0.3 and self.steps[-1] != "cut":
            for name, queue in self.engine.hosted.by_name.items():
                if queue.journaled:
                    self.records[name] = list(self.engine.snapshot_queue(name))
                    self.compacted[name] = list(self.records[name])
            self.records[""] = list(self.engine.snapshot_service())
        self.consumers.clear()
        configured = {queue.name: queue for queue in self.configured.queues}
        if not self.keeps_configuration:
            self.end_configuration(configured)
        self.start()
        for life in list(self.lives.values()):
            if life.given.persistence.kind is PersistenceKind.PERSISTENT:
                life.restart(self.now)
            else:
                self.begin_life(life.given)

    def end_configuration(self, configured: dict[str, SharedReaderQueueSettings]) -> None:
        """The service begins with the configuration that it was given first."""
        if "dead" not in self.lives and "dead" not in self.left:
            self.letters.clear()
        for name in [name for name in self.lives if name not in configured and name != "askedReply"]:
            self.left[name] = self.lives.pop(name)
        for name, given in configured.items():
            life = self.lives.get(name) or self.left.pop(name, None)
            if life is None:
                self.begin_life(given)
                continue
            self.lives[name] = life
            life.given = given
            if given.reply_type:
                reply = self.lives.get("askedReply") or self.left.pop("askedReply")
                self.lives["askedReply"] = reply
                reply.given = replace(given, name="askedReply", topic_name="AskedReply", reply_type="")

    # What is compared.

    def compare(self) -> None:
        messages = self.take()
        for message in messages:
            if isinstance(message, CommandReply):
                assert message.reply.retcode == 0, message.reply.text
        hosted = self.engine.hosted.by_name
        assert set(hosted) == {f"P/S/{name}" for name in self.lives}
        for name, life in self.lives.items():
            full_name = f"P/S/{name}"
            incarnation = hosted[full_name].incarnation
            assert self.known.setdefault((full_name, incarnation), life.number) == life.number, f"{name} is another"
            if name == "dead":
                continue
            answers = [
                (each.identity.sequence_number, int(each.response))
                for each in messages
                if isinstance(each, WriteAcknowledgment) and each.queue == full_name
            ]
            sent = [each for each in messages if isinstance(each, Delivery) and each.queue == full_name]
            same(f"answers of {name}", answers, life.answers)
            same(f"deliveries of {name}", self.by_group(sent), self.by_group(life.sent))
            life.answers, life.sent = [], []
            held = hosted[full_name].held
            same(f"the next position of {name}", held.next_position, life.next_position)
            same(f"what {name} remembers", [each.sequence_number for each in held.retired()], life.retired)
            rows = [
                (
                    each.position,
                    each.identity.sequence_number,
                    each.payload,
                    each.attempts,
                    each.redelivered,
                    each.holder,
                )
                for each in held
            ]
            plain = [
                (each.position, each.number, each.payload, each.attempts, each.redelivered, each.holder or NIL_GUID)
                for each in life.samples
            ]
            same(f"what {name} holds", rows, plain)
        if "dead" in self.lives:
            same("the dead letters", [self.letter(each) for each in hosted["P/S/dead"].held], self.letters)

    def by_group(self, sent: list[Any]) -> dict[Guid, list[Any]]:
        """Deliveries by the requester that they are for: of several groups the order is not the model's to say."""
        groups: dict[Guid, list[Any]] = defaultdict(list)
        for each in sent:
            row = each
            if isinstance(each, Delivery):
                flag = bool(each.flags & SampleFlag.REDELIVERED)
                row = (each.identity.sequence_number, each.consumer_guid, each.attempt, flag)
            groups[self.consumers[row[1]][1]].append(row)
        return groups

    def letter(self, sample: Sample) -> PlainLetter:
        origin = sample.dead_letter
        lives = (self.known.get((name, origin.incarnation)) for name in FULL_NAMES[origin.queue])
        life = next(filter(None, lives), 0)
        return PlainLetter(life, origin.position, origin.identity.sequence_number, sample.payload, sample.redelivered)

    def resource(self, name: str) -> Any:
        kind = ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE if name == "dead" else ResourceKind.SHARED_READER_QUEUE
        return SUBSCRIBER.child(kind, name)


ALL_NAMES = ("orders", "bills", "news", "asked", "askedReply", "dead")
FULL_NAMES = {"Orders@S": ("P/S/bills", "P/S/orders"), "News@S": ("P/S/news",), "AskedReply@S": ("P/S/askedReply",)}


def row_of(sample: Sample) -> tuple[Any, ...]:
    """What is compared of a held sample."""
    number = sample.identity.sequence_number
    return (sample.position, number, sample.payload, sample.attempts, sample.redelivered, sample.holder)


def plain_row_of(sample: PlainSample) -> tuple[Any, ...]:
    """The same of the model's."""
    holder = sample.holder or NIL_GUID
    return (sample.position, sample.number, sample.payload, sample.attempts, sample.redelivered, holder)


def same(what: str, found: Any, expected: Any) -> None:
    """Raise AssertionError where the service is not what the model is."""
    assert found == expected, f"{what}: {found}, and by the model {expected}"


def run_schedules(first: int, schedule_count: int, step_count: int = 40) -> None:
    """Run schedules; an AssertionError names the seed and the steps.

    A queue remembers few identities while they run.
    """
    former = held_module.RETIRED_IDENTITIES_MAX
    held_module.RETIRED_IDENTITIES_MAX = REMEMBERED_MAX  # type: ignore[misc]
    try:
        for seed in range(first, first + schedule_count):
            run = None
            try:
                run = Run(seed)
                for _ in range(step_count):
                    run.step()
            except BaseException as error:
                steps = run.steps if run is not None else []
                raise AssertionError(f"seed {seed}, step {len(steps)}: {steps}: {error}") from error
    finally:
        held_module.RETIRED_IDENTITIES_MAX = former  # type: ignore[misc]
