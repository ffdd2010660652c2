"""The shared reader queue by the book, for the property tests: each question is answered by walking over everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from qsctl.core.messages import AckResponse
from qsctl.core.queue.settings import ReplacementKind, SharedReaderQueueSettings
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import INFINITE_NS


@dataclass
class PlainSample:
    """One sample of the model. `holder` None: it waits."""

    number: int
    expires: int
    attempts: int = 0
    redelivered: bool = False
    holder: Guid | None = None
    sent: tuple[int, int] = (0, 0)
    """When, and after how many others."""
    dead: str = ""
    """How it died, while it waits for room among the dead letters."""
    past: list[Guid] = field(default_factory=list)
    position: int = 0
    payload: bytes = b"x"
    address: Guid = NIL_GUID
    """The requester that it is for, where the queue holds replies."""


@dataclass
class PlainConsumer:
    """One consumer of the model, in order of joining."""

    guid: Guid
    threshold: int
    enabled: bool = True
    reports: bool = False
    """Whether it reported its availability: its own threshold counts then, not the queue's."""
    source: Guid = NIL_GUID
    """Of a requester: the address of its replies."""


class PlainQueue:
    """One queue by the book, and its dead letters. Every question is answered by walking over everything."""

    def __init__(self, given: SharedReaderQueueSettings, dead_max: int = -1) -> None:
        self.given = given
        self.dead_max = dead_max
        self.dead: list[tuple[int, bool]] = []
        """The dead letters: number, and whether flagged redelivered."""
        self.graves: list[PlainSample] = []
        """Who waits for room among them, in order."""
        self.samples: list[PlainSample] = []
        self.outside: list[tuple[int, int]] = []
        self.retired: list[int] = []
        """Numbers that were held before, oldest first."""
        self.remembered_max: int | None = None
        """How many of them are remembered; None: all."""
        self.next_position = 1
        self.consumers: list[PlainConsumer] = []
        self.last: dict[Guid, Guid] = {}
        """Who was served last, by the address of its group."""
        self.sent_count = 0
        self.ends: Counter[str] = Counter()
        self.sent: list[tuple[int, Guid, int, bool]] = []
        self.answers: list[tuple[int, int]] = []

    def write(self, now: int, number: int, lifespan: int, payload: bytes = b"x", address: Guid = NIL_GUID) -> None:
        if number in self.retired or self.find(number) is not None:
            self.answers.append((number, 1))
        elif self.outside or not self.has_room():
            if self.given.limits.replacement is ReplacementKind.REJECT_WITHOUT_REPLACEMENT:
                self.answers.append((number, 0))
            elif number not in [waiting for waiting, _ in self.outside]:
                self.outside.append((number, min(now + lifespan, INFINITE_NS)))
        else:
            self.hold(now, number, min(now + lifespan, INFINITE_NS), payload, address)

    def hold(self, now: int, number: int, expires: int, payload: bytes = b"x", address: Guid = NIL_GUID) -> None:
        self.accept(now, number, expires, payload, address)
        self.dispatch(now)

    def accept(self, now: int, number: int, expires: int, payload: bytes = b"x", address: Guid = NIL_GUID) -> None:
        if expires >= INFINITE_NS:
            expires = min(now + self.given.lifespan_ns, INFINITE_NS)
        self.enter(PlainSample(number, expires, payload=payload, address=address))
        self.answers.append((number, 1))

    def enter(self, sample: PlainSample) -> None:
        sample.position = self.next_position
        self.next_position += 1
        self.samples.append(sample)

    def leave_for_good(self, sample: PlainSample) -> None:
        self.samples.remove(sample)
        self.retired.append(sample.number)
        if self.remembered_max is not None:
            del self.retired[: -self.remembered_max]

    def has_room(self) -> bool:
        return self.given.limits.max_count < 0 or len(self.samples) < self.given.limits.max_count

    def find(self, number: int) -> PlainSample | None:
        return next((sample for sample in self.samples if sample.number == number), None)

    def held_by(self, guid: Guid) -> list[PlainSample]:
        return [sample for sample in self.samples if sample.holder == guid]

    def settle(self, now: int, guid: Guid, number: int, response: AckResponse) -> None:
        accepted = response is AckResponse.ACCEPTED
        sample = self.find(number)
        if sample is None:
            return
        if sample.holder == guid:
            if accepted:
                self.end(sample, "delivered")
            elif response is AckResponse.RETURNED:
                self.give_back(sample)
                sample.redelivered = True
            else:
                self.fail(now, sample, suspicious=False)
        elif guid in sample.past and accepted:
            self.end(sample, "delivered")
        self.dispatch(now)

    def fail(self, now: int, sample: PlainSample, suspicious: bool) -> None:
        self.give_back(sample)
        sample.attempts += 1
        sample.redelivered |= suspicious
        if sample.expires <= now:
            self.end(sample, "expired")
        elif sample.attempts > self.given.redelivery.max_delivery_retries:
            self.end(sample, "failed")

    def give_back(self, sample: PlainSample) -> None:
        assert sample.holder is not None
        sample.past = [guid for guid in sample.past if guid != sample.holder] + [sample.holder]
        sample.holder = None

    def end(self, sample: PlainSample, how: str) -> None:
        if sample.holder is not None and how == "expired":
            self.give_back(sample)
            sample.redelivered |= bool(self.given.dead_letter_queue)
        if how in ("expired", "failed") and self.given.dead_letter_queue:
            sample.dead = how
            self.graves.append(sample)
            self.bury()
            return
        if sample in self.graves:
            self.graves.remove(sample)
        self.leave_for_good(sample)
        self.ends[how] += 1

    def bury(self) -> None:
        while self.graves and (self.dead_max < 0 or len(self.dead) < self.dead_max):
            sample = self.graves.pop(0)
            self.lay_down(sample)
            self.leave_for_good(sample)
            self.ends[sample.dead] += 1

    def lay_down(self, sample: PlainSample) -> None:
        """A dead letter enters its queue."""
        self.dead.append((sample.number, sample.redelivered))

    def unearth(self, now: int, count: int) -> None:
        """Dead letters leave their queue."""
        del self.dead[:count]
        self.bury()
        self.dispatch(now)

    def change(self, now: int, given: SharedReaderQueueSettings) -> None:
        """Other settings: nothing that is held goes for it."""
        if self.given.redelivery.response_timeout_ns >= INFINITE_NS > given.redelivery.response_timeout_ns:
            # Nobody looked at the order of sending: that of the queue stands in for it.
            for at, sample in enumerate(self.samples):
                sample.sent = (sample.sent[0], at - len(self.samples))
        self.given = given
        for consumer in self.consumers:
            if not consumer.reports:
                consumer.threshold = given.distribution.unacked_threshold
        self.dispatch(now)

    def join(self, now: int, guid: Guid, source: Guid = NIL_GUID) -> None:
        if guid not in [consumer.guid for consumer in self.consumers]:
            threshold = self.given.distribution.unacked_threshold
            self.consumers.append(PlainConsumer(guid, threshold, source=source))
            self.dispatch(now)

    def leave(self, now: int, guid: Guid, hands_back: bool, unsent: Collection[int] = ()) -> None:
        """`unsent` are the numbers of the samples that never left for it."""
        for sample in self.held_by(guid):
            if hands_back or sample.number in unsent:
                self.give_back(sample)
            else:
                self.fail(now, sample, suspicious=True)
        leaving = next((consumer for consumer in self.consumers if consumer.guid == guid), None)
        if leaving is not None:
            group = [consumer.guid for consumer in self.consumers if consumer.source == leaving.source]
            if self.last.get(leaving.source) == guid:
                before = group.index(guid) - 1
                self.last.pop(leaving.source)
                if before >= 0:
                    self.last[leaving.source] = group[before]
            self.consumers.remove(leaving)
        self.dispatch(now)

    def advance(self, now: int) -> None:
        self.expire(now)
        timeout = self.given.redelivery.response_timeout_ns
        silent = [one for one in self.samples if one.holder is not None and one.sent[0] + timeout <= now]
        for sample in sorted(silent, key=lambda one: one.sent):
            self.fail(now, sample, suspicious=True)
        for number in [number for number, expires in self.outside if expires <= now]:
            self.answers.append((number, 0))
        self.outside = [waiting for waiting in self.outside if waiting[1] > now]
        self.dispatch(now)

    def expire(self, now: int) -> None:
        for sample in [sample for sample in self.samples if sample.expires <= now and not sample.dead]:
            self.end(sample, "expired")

    def next_deadline(self) -> int:
        timeout = self.given.redelivery.response_timeout_ns
        due = [sample.expires for sample in self.samples if not sample.dead] + [expires for _, expires in self.outside]
        due += [sample.sent[0] + timeout for sample in self.samples if sample.holder is not None]
        return min(due, default=INFINITE_NS)

    def dispatch(self, now: int) -> None:
        self.send(now)
        while self.outside and self.has_room():
            self.accept(now, *self.outside.pop(0))
            self.send(now)

    def send(self, now: int) -> None:
        blocked: set[Guid] = set()
        for sample in list(self.samples):
            if sample.holder is None and not sample.dead and sample.address not in blocked:
                consumer = self.choose(sample)
                if consumer is None:
                    blocked.add(sample.address)
                    continue
                self.last[sample.address] = sample.holder = consumer.guid
                self.sent_count += 1
                sample.sent = (now, self.sent_count)
                self.sent.append((sample.number, consumer.guid, sample.attempts + 1, sample.redelivered))

    def choose(self, sample: PlainSample) -> PlainConsumer | None:
        group = [consumer for consumer in self.consumers if consumer.source == sample.address]
        guids, last = [consumer.guid for consumer in group], self.last.get(sample.address)
        start = guids.index(last) + 1 if last in guids else 0
        turn = group[start:] + group[:start]
        able = [
            consumer
            for consumer in turn
            if consumer.enabled and (consumer.threshold < 0 or len(self.held_by(consumer.guid)) <= consumer.threshold)
        ]
        others = [consumer for consumer in able if not sample.past or consumer.guid != sample.past[-1]]
        return next(iter(others or able), None)

    def restart(self, now: int) -> None:
        self.consumers, self.last, self.outside, self.graves = [], {}, [], []
        for sample in list(self.samples):
            if sample.holder is not None:
                self.give_back(sample)
                sample.redelivered = True
            if sample.dead:
                self.end(sample, sample.dead)
            elif sample.expires <= now:
                self.end(sample, "expired")
            elif sample.attempts > self.given.redelivery.max_delivery_retries:
                self.end(sample, "failed")
        self.dispatch(now)
