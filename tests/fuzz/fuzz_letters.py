"""Letters of other members against a live member: whatever comes in a member's name, nothing is raised.

The first octet says in which role the member is that receives, and how the rest is read: as the octets of a letter, or
as numbers from which frames are drawn that lie close to what the member's log has. What is drawn passes the boundary as
a letter does. After each frame the member is stepped, stored, and its own frames are encoded; at the end it is started
again from its store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec

from qsctl.core.high_availability.frames import (
    Canvass,
    ConditionReport,
    Confirmed,
    Entries,
    Entry,
    Farewell,
    Frame,
    Heartbeat,
    Ordered,
    OrderedRun,
    Relayed,
    Roll,
    Snapshot,
    SnapshotPiece,
    Vote,
)
from qsctl.core.high_availability.roles import Role
from qsctl.core.messages import Write
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.records import (
    Assigned,
    AssignedRun,
    ConfigurationKnown,
    DeadLetterReason,
    Enqueued,
    EpochBegan,
    MembersChanged,
    Remembered,
    RemovalCause,
    Removed,
    RemovedRun,
    ReplicaRejoined,
    Returned,
    SendsAhead,
    Undeliverable,
)
from qsctl.errors import Refused
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.replicas.replica_letters import LETTER_FORMAT, Letter, letter_from_octets, pieces_of
from tests.core.high_availability.cluster import READER, STEP_NS, TIMEOUT_NS, Process, join, queue, write
from tests.core.high_availability.logs import enqueued_run

SHORT_COUNT = 150
DICTIONARY = (
    b"P/S/orders",
    b"P/S/dead",
    b"entries",
    b"snapshot",
    b"piece",
    b"heartbeat",
    b"canvass",
    b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
)

NAMES = ("a", "b", "c")
QUEUES = ("P/S/orders", "P/S/dead", "P/S/other", "configuration", "")
STEPS_MAX = 60


class Numbers:
    """Small numbers out of octets; 0 once they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def are_left(self) -> bool:
        return self._at < len(self._data)

    def next(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def of(self, *choices: int) -> int:
        return choices[self.next() % len(choices)]


class Live:
    """One member of three, `a`, whose neighbours are played by the input."""

    def __init__(self) -> None:
        letters = queue("dead", is_dead_letter=True)
        orders = queue(dead_letter_queue="dead")
        self.process = Process("a", NAMES, (letters, orders), lambda: 0.5)
        self.process.configuration = ReplicationSettings(
            enabled=True, queue_instances=3, master_timeout_ns=TIMEOUT_NS, sample_timeout_ns=TIMEOUT_NS
        )
        self.now = TIMEOUT_NS
        self.process.start(self.now)
        self.process.run(self.now, [join(), write(1), write(2)])

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self.process.member.streams)

    def step(self, *frames: Frame) -> None:
        self.now += STEP_NS
        self.process.run(self.now, frames=frames)
        for number, (_, frame) in enumerate(self.process.member.pop_frames()):
            assert all(pieces_of(Letter(LETTER_FORMAT, NAMES, (frame,)), "a", "run", number))

    def operate(self) -> None:
        """Give the operator's word wherever it is taken."""
        for replica in self.process.member.replicas.values():
            assert len(replica.lack(self.now)) < 2000
            with contextlib.suppress(Refused):
                replica.check_force(self.now)
                replica.force(self.now)

    def as_slave(self) -> None:
        for stream in self.streams:
            began = EpochBegan(stream, 1, "b", flags_all=False)
            more = () if stream == "configuration" else (sample(1, 1), sample(2, 2), Assigned(QUEUES[0], 1, READER, 1))
            self.step(Entries(stream, "b", 1, 0, 0, (began, *more), 1 + len(more[1:]), self.now))

    def as_master(self) -> None:
        for _ in range(STEPS_MAX * 3):
            self.step()
            for stream in self.streams:
                replica = self.process.member.replicas[stream]
                if replica.role is Role.CANDIDATE:
                    trial = Vote(stream, "b", replica.epoch, replica.epoch + 1, True, True)
                    self.step(trial)
                    self.step(Vote(stream, "b", replica.epoch, replica.epoch, False, True))
                if (mastery := replica.mastery) is not None:
                    self.step(Confirmed(stream, "b", replica.epoch, 1, replica.log.last_index, mastery.heartbeat_at_ns))
            if all(each.is_master for each in self.process.member.replicas.values()):
                return
        raise AssertionError("it was not elected")

    def as_learner(self) -> None:
        self.process.crash()
        self.process.start(self.now, is_lost=True)


def sample(position: int, number: int, name: str = QUEUES[0]) -> Enqueued:
    return Enqueued(name, position, SampleIdentity(Guid(b"w" * 16), number), 1, INFINITE_NS, payload=b"x" * number)


class Drawn:
    """Frames drawn from numbers, close to what the member has."""

    def __init__(self, live: Live, numbers: Numbers) -> None:
        self._live, self._numbers = live, numbers

    def frame(self) -> Frame:
        frame = self._frame()
        own = self._live.process.member.replicas[frame.stream].incarnation
        incarnation = self._numbers.of(own, own, own, abs(own), -own, 0, 7, -7)
        if isinstance(frame, Roll):
            left = (own,) if self._bit() and own > 0 else (7,)
            frame = msgspec.structs.replace(frame, is_new=self._bit(), left=left)
        return msgspec.structs.replace(frame, incarnation=incarnation)

    def _frame(self) -> Frame:
        numbers = self._numbers
        stream = self._live.streams[numbers.next() % len(self._live.streams)]
        sender = NAMES[1 + numbers.next() % 2]
        epoch = self._epoch(stream)
        match numbers.next() % 11:
            case 0:
                candidate = self._epoch(stream)
                return Canvass(stream, sender, epoch, candidate, self._epoch(stream), self._index(stream), self._bit())
            case 1:
                return Vote(stream, sender, epoch, self._epoch(stream), self._bit(), self._bit())
            case 2:
                at, of = self._index(stream), self._epoch(stream)
                return Entries(
                    stream, sender, epoch, at, of, self._records(stream), self._index(stream), self._time(), self._bit()
                )
            case 3:
                return Confirmed(
                    stream, sender, epoch, numbers.next(), self._index(stream), self._time(),
                    self._bit(), self._bit(), self._bit(), 0, numbers.of(0, 0, 0, 1), numbers.next(),
                )  # fmt: skip
            case 4:
                of = self._epoch(stream)
                records = (EpochBegan(stream, of, sender, self._bit()), *self._records(stream))
                return Snapshot(stream, sender, epoch, self._index(stream), of, records, self._time())  # type: ignore[arg-type]
            case 5:
                run = self._live.process.member.replicas[stream].run
                return Roll(
                    stream, sender, epoch, numbers.next(), self._epoch(stream), self._index(stream), self._bit(),
                    (None, run, 7)[numbers.next() % 3], numbers.next() - 3, self._bit(), (numbers.next(),),
                    self._epoch(stream), self._index(stream),
                )  # fmt: skip
            case 6:
                payload = b"x" * numbers.of(0, 1, 100)
                attempt, flags, lifespan_ns = numbers.next(), numbers.next() << numbers.next() % 9, numbers.next()
                written = Write(
                    "P", "Orders", self._identity(), payload, lifespan_ns=lifespan_ns, flags=flags, attempt=attempt
                )
                return Relayed(stream, sender, epoch, self._queue(), written)
            case 7:
                return ConditionReport(stream, sender, epoch, numbers.next(), self._bit())
            case 8:
                at, of = self._index(stream), self._epoch(stream)
                return Heartbeat(stream, sender, epoch, at, of, self._index(stream), self._time())
            case 9:
                return self._piece(stream, sender, epoch)
            case _:
                return Farewell(stream, sender, epoch, NAMES[numbers.next() % 3])

    def _piece(self, stream: str, sender: str, epoch: int) -> SnapshotPiece:
        """A piece that often follows those that have arrived, and is often the last one."""
        numbers = self._numbers
        arrived_count = self._live.process.member.replicas[stream]._arriving.count
        first = numbers.of(arrived_count, arrived_count, arrived_count, 0, arrived_count + 1, 2**63 - 1)
        of, records = self._epoch(stream), self._records(stream)
        if not first:
            records = (EpochBegan(stream, of, sender, self._bit()), *records)
        count = numbers.of(first + len(records), 5, 5, first + len(records) + 1, 2**63 - 1)
        mark = numbers.of(1, 1, 1, 2, 0)
        return SnapshotPiece(
            stream,
            sender,
            epoch,
            self._index(stream),
            of,
            count,
            mark,
            first,
            records,
            self._time(),  # type: ignore[arg-type]
        )

    def _bit(self) -> bool:
        return bool(self._numbers.next() & 1)

    def _epoch(self, stream: str) -> int:
        own = self._live.process.member.replicas[stream].epoch
        return max(0, self._numbers.of(own, own, own, own + 1, own - 1, 0, 2**53, 2**63 - 1))

    def _index(self, stream: str) -> int:
        log = self._live.process.member.replicas[stream].log
        last = log.last_index
        return max(0, self._numbers.of(last, last, last + 1, last - 1, log.commit_index, 0, 1, 2**63 - 1))

    def _time(self) -> int:
        return max(0, self._numbers.of(self._live.now, self._live.now, self._live.now - STEP_NS, 0, 2**63 - 1))

    def _queue(self) -> str:
        return QUEUES[self._numbers.of(0, 0, 0, 1, 1, 2, 3, 4)]

    def _identity(self) -> SampleIdentity:
        return SampleIdentity((Guid(b"w" * 16), READER, NIL_GUID)[self._numbers.next() % 3], self._numbers.next() % 8)

    def _records(self, stream: str) -> tuple[Entry, ...]:
        return tuple(self._record(stream) for _ in range(self._numbers.next() % 5))

    def _record(self, stream: str) -> Entry:
        numbers = self._numbers
        name, position = self._queue(), numbers.of(1, 2, 3, 4, 0, 5, 6, 2**63 - 1)
        reason = DeadLetterReason(numbers.next() % 2)
        match numbers.next() % 17:
            case 0:
                return EpochBegan(stream, self._epoch(stream), "b", self._bit())
            case 1:
                return sample(position, numbers.next() % 8, name)
            case 2:
                return msgspec.structs.replace(
                    sample(position, numbers.next() % 8, name), dead_letter_from=("Orders@S", "")[numbers.next() % 2],
                    dead_letter_reason=reason, dead_letter_position=numbers.next() % 8,
                )  # fmt: skip
            case 3:
                return Assigned(name, position, self._identity().writer_guid, numbers.next())
            case 4:
                return Returned(name, position, numbers.next(), self._bit())
            case 5:
                return Undeliverable(name, position, reason)
            case 6:
                return Removed(name, position, RemovalCause(1 + numbers.next() % 4))
            case 7:
                return Remembered(name, position, (self._identity(),))
            case 8:
                return ReplicaRejoined(stream, NAMES[numbers.next() % 3], numbers.next())
            case 9:
                return ConfigurationKnown(stream, "origin", {}, {})
            case 10:
                return SendsAhead(stream, self._bit())
            case 11:
                return MembersChanged(stream, NAMES[: numbers.next() % 4], NAMES[1 + numbers.next() % 3 :])
            case 12:
                run = enqueued_run(position, *(b"x" * numbers.of(0, 1, 100) for _ in range(numbers.next() % 4)))
                return msgspec.structs.replace(run, queue=name, identity=self._identity())
            case 13:
                return OrderedRun(name, position, self._identity(), numbers.of(2, 3, 1, 0), 1, INFINITE_NS, 0)
            case 14:
                consumers = (READER, self._identity().writer_guid)[: numbers.of(1, 2, 0)]
                return AssignedRun(name, position, numbers.of(1, 2, 3, 0, 2**63 - 1), consumers)
            case 15:
                count, step = numbers.of(1, 2, 0, 2**63 - 1), numbers.of(1, 1, 2, 0, 2**63 - 1)
                return RemovedRun(name, position, count, step, RemovalCause.DELIVERED)
            case _:
                return Ordered(name, position, self._identity(), 1, numbers.of(2, INFINITE_NS, 0), numbers.next())


ROLES: tuple[Callable[[Live], None], ...] = (Live.as_slave, Live.as_master, Live.as_learner, lambda _: None)


def deliver(live: Live, octets: bytes, sender: str) -> None:
    try:
        letter = letter_from_octets(octets, sender, lambda _: None)
    except Malformed as error:
        assert len(str(error)) < 2000
        return
    for frame in letter.frames:
        live.step(frame)


def one_input(data: bytes) -> None:
    if not data:
        return
    live = Live()
    ROLES[data[0] % len(ROLES)](live)
    if data[0] & 64:
        deliver(live, data[1:], "b")
    else:
        numbers = Numbers(data[1:])
        drawn = Drawn(live, numbers)
        for _ in range(STEPS_MAX):
            if not numbers.are_left:
                break
            frame = drawn.frame()
            deliver(live, msgspec.msgpack.encode(Letter(LETTER_FORMAT, NAMES, (frame,))), frame.sender)
    for _ in range(4):
        live.now += TIMEOUT_NS
        live.step()
    live.operate()
    live.now += TIMEOUT_NS
    live.step()
    live.process.crash()
    live.process.start(live.now)
    live.step()
