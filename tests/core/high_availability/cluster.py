"""A cluster of members in one process, for tests: each with its store, a clock that the test turns, and frames that the
test delivers, drops or keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from qsctl.core import records
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.high_availability._log import LogSnapshot
from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.frames import Frame
from qsctl.core.high_availability.member import Member
from qsctl.core.high_availability.outgoing import LogWrite
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import StoredLog
from qsctl.core.high_availability.versions import VERSION
from qsctl.core.messages import (
    Acknowledgment,
    CommandReply,
    ConsumerJoined,
    Delivery,
    Inbound,
    Outbound,
    Write,
    WriteAcknowledgment,
    WriteRun,
    one_by_one,
)
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    ReplicationSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import QueueRecord, Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.turn import Turn
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds

STREAM = "P/S/orders"
WRITER, READER, OTHER_READER = Guid(b"w" * 16), Guid(b"r" * 16), Guid(b"s" * 16)
TIMEOUT_NS = SECOND_NS
STEP_NS = 20 * MILLISECOND_NS
DRAW = counted_incarnations()
"""Of all members: what each draws is another number."""


def queue(
    name: str = "orders", *, instances: int = 3, volatile: bool = False, **given: Any
) -> SharedReaderQueueSettings:
    replication = {"synchronize_consumer_assignment": True} | given.pop("replication", {})
    return SharedReaderQueueSettings(
        name,
        name.capitalize(),
        persistence=PersistenceSettings(PersistenceKind.VOLATILE if volatile else PersistenceKind.PERSISTENT),
        replication=ReplicationSettings(
            enabled=True,
            queue_instances=instances,
            master_timeout_ns=TIMEOUT_NS,
            sample_timeout_ns=2 * TIMEOUT_NS,
            **replication,
        ),
        **given,
    )


class Store:
    """One stream on a disk: what is durable."""

    def __init__(self) -> None:
        self.hard_state = HardState()
        self.snapshot_index = 0
        self.snapshot_records: Sequence[QueueRecord] = ()
        self.records: list[QueueRecord] = []

    def do(self, write: LogWrite) -> None:
        if write.hard_state is not None:
            self.hard_state = write.hard_state
        if write.snapshot is not None:
            self.records = []
            self.snapshot_index, self.snapshot_records = write.snapshot.index, write.snapshot.records
        if write.truncate_from:
            del self.records[write.truncate_from - self.snapshot_index - 1 :]
        if write.records:
            assert write.first_index == self.snapshot_index + len(self.records) + 1
            self.records += records.one_by_one(write.records)

    def compact(self, base: LogSnapshot) -> None:
        """Replace the records up to a snapshot that the replica has in memory, as a driver does in its own time."""
        if self.snapshot_index < base.index <= self.snapshot_index + len(self.records):
            del self.records[: base.index - self.snapshot_index]
            self.snapshot_index, self.snapshot_records = base.index, base.records

    def load(self) -> StoredLog:
        return StoredLog(self.hard_state, self.snapshot_index, self.snapshot_records, list(self.records))


class Process:
    """One member with its turn and its stores."""

    def __init__(
        self, name: str, names: Sequence[str], queues: Sequence[SharedReaderQueueSettings], jitter: Callable[[], float]
    ) -> None:
        self.name = name
        self.names = names
        self._queues = queues
        self._jitter = jitter
        self.stores: dict[str, Store] = {}
        self.sent: list[Outbound] = []
        self.is_up = False
        self.syncs = True
        self.compacted_over_count = 8_192
        self.version = VERSION
        """The version of its letters."""
        self.configuration: ReplicationSettings | None = None
        """How the configuration is replicated."""
        self.is_joining = False
        """It was not a member when the cluster was formed."""
        self.master_priority = 0
        self.service_records: list[Record] = []
        """The service's own state, as it is stored."""
        self._resting: dict[str, Store] = {}

    def start(self, now: Nanoseconds, *, is_lost: bool = False, is_new: bool = False) -> None:
        subscriber = SharedSubscriberSettings("S", (), tuple(self._queues))
        settings = ServiceSettings(self.name, (DomainParticipantSettings("P", 0, (subscriber,)),))
        engine = ServiceEngine(settings, started_at=now, draw=DRAW, journal=Journal.REPLICATED)
        for record in self.service_records:
            engine.replay(record)
        self.member = Member(
            engine, self.names, started_at=now, jitter=self._jitter, compacted_over_count=self.compacted_over_count,
            configuration=self.configuration, is_joining=self.is_joining, master_priority=self.master_priority,
        )  # fmt: skip
        self.member.stored_before = lambda stream: self._resting.get(stream, Store()).load()
        self._resting = {
            stream: store
            for stream, store in self.stores.items()
            if stream not in self.member.streams and self.member.rest(stream, store.load())
        }
        for stream in self.member.streams:
            if is_lost or is_new:
                self.stores[stream] = Store()
                self.member.restore(stream, StoredLog(), is_lost=is_lost, is_new=is_new)
            elif stream in self.stores and self.member.replicas[stream].is_persistent:
                self.member.restore(stream, self.stores[stream].load())
            else:
                self.stores[stream] = Store()
        for stream in self.member.outlived:
            self.stores[stream] = Store()
        self.member.start(now)
        self.turn = Turn(self.member, self.member.admit)
        self.is_up = True
        self._unsynced: list[LogWrite] = []

    def crash(self) -> None:
        self.is_up = False

    @property
    def replica(self) -> Replica:
        return next(iter(self.member.replicas.values()))

    def run(self, now: Nanoseconds, messages: Sequence[Inbound] = (), frames: Iterable[Frame] = ()) -> None:
        self.member.receive_frames(now, frames)
        self.turn.receive(messages)
        while self.turn.step(now):
            pass
        for stream in self.stores.keys() - set(self.member.streams):
            del self.stores[stream]
        self._unsynced += self.member.pop_writes()
        if self.syncs:
            for write in self._unsynced:
                self.stores.setdefault(write.stream, Store()).do(write)
                self.member.stored(now, write.stream, write.number)
            self._unsynced = []
            for stream, replica in self.member.replicas.items():
                if stream in self.stores:
                    self.stores[stream].compact(replica.log.base)
        while (group := self.turn.to_write()) is not None:
            for ready in group.turns:
                self.service_records += ready.service_records
                for batch in ready.batches:
                    self.turn.durable(batch.stream, batch.last_index)
        for released in self.turn.to_send():
            self.sent += released.messages

    def deliveries(self) -> list[Delivery]:
        return [each for each in one_by_one(self.sent) if isinstance(each, Delivery)]

    def replies(self) -> dict[int, tuple[str, str]]:
        """What commands were answered, by their numbers: return code and text."""
        return {
            each.request.sequence_number: (each.reply.retcode.name, each.reply.text)
            for each in self.sent
            if isinstance(each, CommandReply)
        }

    def answers(self) -> list[tuple[int, int]]:
        """Which sample, by its number, was answered what."""
        return [
            (each.identity.sequence_number, int(each.response))
            for each in one_by_one(self.sent)
            if isinstance(each, WriteAcknowledgment)
        ]


class Cluster:
    """Members `a`, `b`, `c` …; their frames arrive at the next tick, in order, unless the way is cut."""

    def __init__(
        self,
        size: int = 3,
        *queues: SharedReaderQueueSettings,
        jitter: Sequence[float] = (),
        configuration: ReplicationSettings | None = None,
        files: Mapping[str, Sequence[SharedReaderQueueSettings]] = MappingProxyType({}),
        priorities: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        names = [chr(ord("a") + at) for at in range(size)]
        spreads = jitter or [at / size for at in range(size)]
        self.now: Nanoseconds = 0
        self.cuts: set[tuple[str, str]] = set()
        self.frames: list[tuple[str, str, Frame]] = []
        self.processes = {
            name: Process(
                name, names, files.get(name, queues or (queue(instances=size),)), lambda spread=spread: spread
            )  # type: ignore[misc]
            for name, spread in zip(names, spreads, strict=True)
        }
        for process in self.processes.values():
            process.configuration = configuration
            process.master_priority = priorities.get(process.name, 0)
            process.start(0)

    def __getitem__(self, name: str) -> Process:
        return self.processes[name]

    def __iter__(self) -> Any:
        return (process for process in self.processes.values() if process.is_up)

    def join(self, name: str, formed: Sequence[str] = ()) -> Process:
        """Start a process that knows the members that the cluster was formed with, and is none of them."""
        first = self.processes["a"]
        process = self.processes[name] = Process(name, formed or first.names, first._queues, lambda: 0.5)
        process.configuration, process.is_joining = first.configuration, True
        process.start(self.now, is_new=True)
        return process

    def cut(self, *names: str) -> None:
        """Isolate these from the others, and leave them with each other."""
        others = [name for name in self.processes if name not in names]
        self.cuts |= {(one, other) for one in names for other in others}
        self.cuts |= {(other, one) for one in names for other in others}

    def heal(self) -> None:
        self.cuts.clear()

    def tick(self) -> None:
        """Deliver what is on its way, let everybody do what is due."""
        self.tick_others(None)

    def tick_others(self, than: Process | None) -> None:
        """The same, but for one process."""
        self.now += STEP_NS
        arriving, self.frames = self.frames, []
        for process in self:
            if process is than:
                continue
            process.run(
                self.now,
                frames=[
                    frame
                    for sender, recipient, frame in arriving
                    if recipient == process.name and (sender, recipient) not in self.cuts
                ],
            )
            self.gather(process)

    def gather(self, process: Process) -> None:
        for recipient, frame in process.member.pop_frames():
            if recipient in self.processes:  # else it is a placeholder
                self[recipient].member.versions.note(process.name, process.version)
            self.frames.append((process.name, recipient, frame))

    def run_for(self, duration_ns: Nanoseconds) -> None:
        for _ in range(duration_ns // STEP_NS):
            self.tick()

    def run_until(self, holds: Callable[[], object], within_ns: Nanoseconds = 20 * TIMEOUT_NS) -> None:
        for _ in range(within_ns // STEP_NS):
            if holds():
                return
            self.tick()
        raise AssertionError(f"{holds} does not hold after {within_ns} ns")

    def send(self, name: str, *messages: Inbound) -> None:
        self[name].run(self.now, messages)
        self.gather(self[name])

    def send_all(self, *messages: Inbound) -> None:
        for process in self:
            self.send(process.name, *messages)

    def masters(self) -> list[str]:
        return [process.name for process in self if process.replica.is_master]

    def elect(self) -> Process:
        """Run until there is one master whose own first entry is committed; return it."""

        def is_elected() -> bool:
            masters = self.masters()
            return len(masters) == 1 and self[masters[0]].replica.log.commit_index >= (
                self[masters[0]].replica.clients.own_epoch_index
            )

        self.run_until(is_elected)
        return self[self.masters()[0]]


def write(number: int, payload: bytes = b"", attempt: int = 1, flags: int = 0, topic: str = "Orders") -> Write:
    identity = SampleIdentity(WRITER, number)
    return Write("P", topic, identity, payload or b"sample %d" % number, flags=flags, attempt=attempt)


def write_run(first: int, payloads: Sequence[bytes], attempt: int = 1) -> WriteRun:
    return WriteRun("P", "Orders", SampleIdentity(WRITER, first), tuple(payloads), attempt=attempt)


def join(guid: Guid = READER, name: str = STREAM, threshold: int | None = None) -> ConsumerJoined:
    return ConsumerJoined(name, guid, unacked_threshold=threshold)


def acknowledge(number: int, guid: Guid = READER, name: str = STREAM) -> Acknowledgment:
    return Acknowledgment(name, guid, SampleIdentity(WRITER, number))


def held(process: Process, name: str = STREAM) -> list[str]:
    """The samples of a queue, readable: number, state, flag."""
    found = process.member.engine.hosted.by_name[name]
    return [
        f"{sample.original_identity.sequence_number} {sample.state.name.lower()}{' redelivered' * sample.redelivered}"
        for sample in found.held
    ]
