"""The shared reader queue by the book, for the property tests: each question is answered by walking over everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from qsctl.core.messages import AckResponse
from qsctl.core.queue.settings import ReplacementKind, SharedReaderQueueSettings
from qsctl.identity import Guid
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


@dataclass
class PlainConsumer:
    """One consumer of the model, in order of joining."""

    guid: Guid
    threshold: int
    enabled: bool = True
    reports: bool = False
    """Whether it reported its availability: its own threshold counts then, not the queue's."""


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
        self.seen: set[int] = set()
        self.consumers: list[PlainConsumer] = []
        self.last: Guid | None = None
        self.sent_count = 0
        self.ends: Counter[str] = Counter()
        self.sent: list[tuple[int, Guid, int, bool]] = []
        self.answers: list[tuple[int, int]] = []

    def write(self, now: int, number: int, lifespan: int) -> None:
        if number in self.seen:
            self.answers.append((number, 1))
        elif self.outside or not self.has_room():
            if self.given.limits.replacement is ReplacementKind.REJECT_WITHOUT_REPLACEMENT:
                self.answers.append((number, 0))
            elif number not in [waiting for waiting, _ in self.outside]:
                self.outside.append((number, min(now + lifespan, INFINITE_NS)))
        else:
            self.hold(now, number, min(now + lifespan, INFINITE_NS))

    def hold(self, now: int, number: int, expires: int) -> None:
        if expires >= INFINITE_NS:
            expires = min(now + self.given.lifespan_ns, INFINITE_NS)
        self.seen.add(number)
        self.samples.append(PlainSample(number, expires))
        self.answers.append((number, 1))
        self.dispatch(now)

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
        self.samples.remove(sample)
        self.ends[how] += 1

    def bury(self) -> None:
        while self.graves and (self.dead_max < 0 or len(self.dead) < self.dead_max):
            sample = self.graves.pop(0)
            self.dead.append((sample.number, sample.redelivered))
            self.samples.remove(sample)
            self.ends[sample.dead] += 1

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

    def join(self, now: int, guid: Guid) -> None:
        if guid not in [consumer.guid for consumer in self.consumers]:
            self.consumers.append(PlainConsumer(guid, self.given.distribution.unacked_threshold))
            self.dispatch(now)

    def leave(self, now: int, guid: Guid, hands_back: bool) -> None:
        for sample in self.held_by(guid):
            if hands_back:
                self.give_back(sample)
            else:
                self.fail(now, sample, suspicious=True)
        guids = [consumer.guid for consumer in self.consumers]
        if guid in guids:
            if self.last == guid:
                before = guids.index(guid) - 1
                self.last = guids[before] if before >= 0 else None
            del self.consumers[guids.index(guid)]
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
        for sample in list(self.samples):
            if sample.holder is None and not sample.dead:
                consumer = self.choose(sample)
                if consumer is None:
                    break
                self.last = sample.holder = consumer.guid
                self.sent_count += 1
                sample.sent = (now, self.sent_count)
                self.sent.append((sample.number, consumer.guid, sample.attempts + 1, sample.redelivered))
        while self.outside and self.has_room():
            self.hold(now, *self.outside.pop(0))

    def choose(self, sample: PlainSample) -> PlainConsumer | None:
        guids = [consumer.guid for consumer in self.consumers]
        start = guids.index(self.last) + 1 if self.last in guids else 0
        turn = self.consumers[start:] + self.consumers[:start]
        able = [
            consumer
            for consumer in turn
            if consumer.enabled and (consumer.threshold < 0 or len(self.held_by(consumer.guid)) <= consumer.threshold)
        ]
        others = [consumer for consumer in able if not sample.past or consumer.guid != sample.past[-1]]
        return next(iter(others or able), None)

    def restart(self, now: int) -> None:
        self.consumers, self.last, self.outside, self.graves = [], None, [], []
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
