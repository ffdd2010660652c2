"""Plain queues that carry out the effects of a bridge, with consumers whose journals are judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from qsctl.client.bridge._place import MirrorPlace, place_from_octets, place_octets
from qsctl.client.bridge.steps import (
    BridgeCounts,
    BridgeRest,
    BridgeSteps,
    Effect,
    FlagSource,
    InsertTarget,
    ReadPlaces,
    ReadSource,
    RemovePlace,
    RemoveSource,
    Steps,
    WritePlace,
    mirror_steps,
    shovel_steps,
)
from qsctl.core.admin.reply import MessageData, MessageStatus, SamplesChanged
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.queue.insertion import Insertion
from qsctl.errors import Refused
from qsctl.identity import Guid, Incarnation, SampleIdentity

WRITER = Guid(b"w" * 16)


def number_of(identity: SampleIdentity) -> int:
    return identity.sequence_number


@dataclass
class HeldSample:
    position: int
    number: int
    payload: bytes
    flagged: bool
    flags: int = 0
    with_consumer: bool = False


@dataclass
class Queue:
    """A queue that remembers no identity that has left it: the harshest target of a second copy."""

    incarnation: int = 1
    room: int = 1_000
    too_large: set[int] = field(default_factory=set)
    """Numbers of samples that it refuses for what they are."""
    held: list[HeldSample] = field(default_factory=list)
    last_position: int = 0

    def enter(self, number: int, payload: bytes = b"", *, flagged: bool = False, flags: int = 0) -> Insertion:
        for each in self.held:
            if each.number == number:
                return Insertion.HELD_ALREADY if each.payload == payload else Insertion.HELD_ANOTHER
        if number in self.too_large:
            return Insertion.TOO_LARGE
        if len(self.held) >= self.room:
            return Insertion.NO_ROOM
        self.last_position += 1
        self.held.append(HeldSample(self.last_position, number, payload, flagged, flags))
        return Insertion.ENQUEUED

    def insert(self, samples: list[tuple[int, bytes, bool, int]]) -> SamplesChanged:
        became: list[Insertion] = []
        for number, payload, flagged, flags in samples:
            is_full = bool(became) and became[-1] is Insertion.NO_ROOM
            became.append(Insertion.NO_ROOM if is_full else self.enter(number, payload, flagged=flagged, flags=flags))
        refused = tuple(at for at, each in enumerate(became) if not each.is_done)
        return SamplesChanged(
            len(became) - len(refused),
            became.count(Insertion.HELD_ALREADY),
            refused,
            became[refused[0]].value if refused else "",
        )

    def at(self, position: int) -> HeldSample | None:
        return next((each for each in self.held if each.position == position), None)

    def remove(self, position: int) -> bool:
        found = self.at(position)
        if found is not None:
            self.held.remove(found)
        return found is not None

    def read(self, after: int, count: int, *, undelivered: bool) -> list[MessageData]:
        found = [each for each in self.held if each.position > after and not (undelivered and each.with_consumer)]
        return [
            MessageData(
                "q", each.position, MessageStatus.UNDELIVERED, SampleIdentity(WRITER, each.number), each.payload,
                len(each.payload), each.position, 0, each.flagged, flags=each.flags,
                incarnation=Incarnation(self.incarnation),
            )
            for each in found[:count]
        ]  # fmt: skip


@dataclass
class Bridged:
    """Two services with a bridge that may be killed, and the journals of their clients."""

    mirror: bool = False
    bridge: BridgeSteps = field(default_factory=BridgeSteps)
    source: Queue = field(default_factory=Queue)
    target: Queue = field(default_factory=Queue)
    places: Queue = field(default_factory=Queue)
    produced: list[int] = field(default_factory=list)
    consumed: list[tuple[int, bool]] = field(default_factory=list)
    """Deliveries at the target, and at the source of a shovel, in the order of time: number, flag."""
    bridges: list[int] = field(default_factory=list)
    """The flags of the samples that were consumed at the target."""
    rests: list[str] = field(default_factory=list)
    runs: int = 0
    reads_again: bool = True
    """The answer to a rest."""
    _steps: Steps | None = None
    _effect: Effect | None = None

    def produce(self, count: int, payload: bytes = b"") -> None:
        for _ in range(count):
            self.produced.append(len(self.produced) + 1)
            self.source.enter(self.produced[-1], payload)

    def consume_target(self, count: int) -> None:
        for each in self.target.held[:count]:
            self.target.remove(each.position)
            self.consumed.append((each.number, each.flagged))
            self.bridges.append(each.flags)

    def consume_source(self) -> None:
        """A consumer of the source processes the first sample that none has."""
        for each in self.source.held:
            if not each.with_consumer:
                self.source.remove(each.position)
                self.consumed.append((each.number, each.flagged))
                return

    def hold(self) -> None:
        """A consumer of the source has the first sample that none has, and leaves later, having processed it."""
        for each in self.source.held:
            if not each.with_consumer:
                each.with_consumer = True
                self.consumed.append((each.number, each.flagged))
                return

    def give_back(self) -> None:
        for each in self.source.held:
            if each.with_consumer:
                each.with_consumer, each.flagged = False, True

    def kill(self, *, is_carried_out: bool) -> None:
        if is_carried_out and self._effect is not None:
            self.answer(self._effect)
        self._steps = self._effect = None
        self.bridge = replace(self.bridge, counts=BridgeCounts(), _count=1)  # another process begins anew

    def step(self) -> bool:
        """Carry out one effect; return whether it was a rest or the end."""
        if self._steps is None:
            self.runs += 1
            self._steps = (
                mirror_steps(self.bridge, "m", f"run {self.runs}") if self.mirror else shovel_steps(self.bridge)
            )
            self._effect = next(self._steps, None)
        if self._effect is None:
            return True
        effect = self._effect
        try:
            answer = self.answer(effect)
        except Refused as error:
            self._effect = self._steps.throw(error)
            return False
        try:
            self._effect = self._steps.send(answer)
        except StopIteration:
            self._effect = None
            return True
        return isinstance(effect, BridgeRest)

    def answer(self, effect: Effect) -> Any:
        match effect:
            case ReadSource(after, incarnation, count):
                if incarnation not in (0, self.source.incarnation):
                    raise Refused("another creation")
                return self.source.read(after, count, undelivered=not self.mirror)
            case FlagSource(samples):
                held = [self.source.at(each.position) for each in samples]
                refused = tuple(at for at, each in enumerate(held) if each is None or each.with_consumer)
                for each in held:
                    if each is not None and not each.with_consumer:
                        each.flagged = True
                return SamplesChanged(len(samples) - len(refused), 0, refused)
            case InsertTarget(inserted):
                return self.target.insert([plain(each) for each in inserted])
            case RemoveSource(samples):
                return SamplesChanged(sum(self.source.remove(each.position) for each in samples))
            case ReadPlaces():
                return {each.number: place_from_octets(each.payload) for each in self.places.held}
            case WritePlace(number, place):
                return self.places.insert([(number, place_octets(place), False, 0)])
            case RemovePlace(number):
                return any(self.places.remove(each.position) for each in self.places.held if each.number == number)
            case BridgeRest(obstacle):
                self.rests.append(obstacle)
                return self.reads_again

    def run(self, steps_max: int = 10_000) -> None:
        """Carry out effects until the bridge rests or ends."""
        for _ in range(steps_max):
            if self.step():
                return
        raise AssertionError("it does not come to rest")

    @property
    def place(self) -> MirrorPlace:
        (held,) = self.places.held
        return place_from_octets(held.payload)


def plain(inserted: InsertedSample) -> tuple[int, bytes, bool, int]:
    return number_of(inserted.identity), inserted.payload, inserted.redelivered, inserted.flags


def unflagged_doubles(consumed: list[tuple[int, bool]]) -> list[int]:
    """Return the samples of which a delivery after the first has no flag."""
    seen: set[int] = set()
    found: list[int] = []
    for number, flagged in consumed:
        if number in seen and not flagged:
            found.append(number)
        seen.add(number)
    return found
