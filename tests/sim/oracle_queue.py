"""A plain queue of any broker: objects, lists and one agenda, written from the rules and not from the kernel.

Arrivals and random numbers are inputs of both: the streams of arrivals, and draw n of a stream's key. All else is here
once more, as slowly as it likes to be.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qsctl.instant import INFINITE_NS
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.broker_queue._layout import arrivals_scenario
from qsctl.sim.kernel.random import exponential, logarithm, normal, stream_key, uniform, uniform_bits
from qsctl.sim.scenario.intervals import occurrences
from qsctl.sim.scenario.parts import broker_queue as b
from qsctl.sim.scenario.parts.empirical import read_times
from qsctl.sim.scenario.parts.work_time import WORK_MAX_NS, WorkKind, WorkTime
from qsctl.sim.scenario.scenario import ClientInterval, ConstantSize, Scenario

NEVER = -1
PLANNED, AGENDA, DELAY, TIME_OUT, LIFE, ARRIVAL = range(6)
KINDS = (
    "tick", "started", "arrive", "ask", "empty", "wait_over", "work_ends", "beat", "acknowledge", "reject", "flush",
    "back_off", "try_again", "publish", "rebalanced",
)  # fmt: skip
PLANS = ("warm_up", "outage_ends", "outage_begins", "pause_ends", "pause_begins", "leave", "join")


def draw(work: WorkTime, key: int, n: int) -> int:
    """Return draw `n` of a distribution."""
    k = np.uint64(key)

    def whole(value: float) -> int:
        return max(1, min(WORK_MAX_NS, math.floor(min(value, 4.0e18) + 0.5)))

    match work.kind:
        case WorkKind.CONSTANT:
            return work.times_ns[0]
        case WorkKind.EXPONENTIAL:
            return whole(-logarithm(uniform(k, n)) * work.times_ns[0])
        case WorkKind.LOGNORMAL:
            mean, deviation = work.lognormal_parameters()
            return whole(exponential(mean + deviation * normal(k, n)))
        case WorkKind.GAMMA:
            shape = 1.0 / (work.variation * work.variation)
            return whole(gamma(k, n, shape) * (work.times_ns[0] / shape))
        case WorkKind.UNIFORM:
            low, high = work.times_ns
            return low + int(uniform(k, n) * (float(high) - float(low) + 1.0))
        case WorkKind.HISTOGRAM:
            times, weights = work.times_ns, work.weights
        case WorkKind.EMPIRICAL:
            times, counts = read_times(Path(work.path))
            weights = tuple(map(float, counts))
    u, total, reached = uniform(k, n), sum(weights), 0.0
    for time, weight in zip(times, weights, strict=True):
        reached += weight
        if reached / total > u:
            return time
    return times[-1]


def gamma(key: Any, n: int, shape: float) -> float:
    """Marsaglia and Tsang, with a stream for each draw."""
    own = np.uint64(uniform_bits(key, n))
    boost = 1.0
    if shape < 1.0:
        boost = exponential(max(-700.0, logarithm(uniform(own, 1 << 40)) / shape))
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = 0
    while True:
        x = normal(own, 2 * attempt)
        v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x)
        u = uniform(own, 2 * attempt + 1)
        if 1.0 + c * x > 0.0 and logarithm(u) < 0.5 * x * x + d - d * v + d * logarithm(v):
            return boost * d * v
        attempt += 1


@dataclass(eq=False)
class PlainMessage:
    publisher: int
    serial: int
    size: int
    kind: int
    born: int
    line: int = 0
    poison: bool = False
    entered: int = NEVER
    due: int = INFINITE_NS
    started: int = NEVER
    state: str = "outside"
    backing_off: bool = False
    deliveries: int = 0
    attempts: int = 0
    working: int = 0
    completed: bool = False
    delivery: PlainDelivery | None = None
    tries: int = 0


@dataclass(eq=False)
class PlainDelivery:
    message: PlainMessage
    consumer: PlainConsumer | None
    number: int
    presence: int
    """Of its consumer."""
    valid: bool = True
    credit: bool = True
    worked: bool = False
    fails: bool = False
    sent: bool = False
    until: int = NEVER
    stamp: int = 0
    """Which of its time-outs counts."""


@dataclass(eq=False)
class PlainConsumer:
    number: int
    group: b.QueueWorkers
    present: bool = False
    presence: int = 0
    out: int = 0
    paused: int = 0
    buffer: list[PlainDelivery] = field(default_factory=list)
    has: list[PlainDelivery] = field(default_factory=list)
    gathered: list[PlainDelivery] = field(default_factory=list)
    gathered_since: int = 0
    flush_armed: bool = False
    incoming: int = 0
    asking: bool = False
    waiting: bool = False
    wait_until: int = 0
    armed: bool = False
    working: int = 0
    draining: bool = False
    starting: bool = False
    joined: int = 0
    available: list[int] = field(default_factory=list)
    mark: int = 0
    paid: bool = False
    busy_ns: int = 0
    present_ns: int = 0
    paid_ns: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def polls(self) -> bool:
        return self.group.receive is b.ReceiveMode.POLL

    @property
    def half(self) -> int:
        return self.group.round_trip_ns // 2

    @property
    def has_credit(self) -> bool:
        return self.group.prefetch < 0 or self.out < self.group.prefetch


class PlainQueue:
    """One repetition; `rows` is its log, and the rest is what `WorkedQueue` and `QueueWorker` state."""

    def __init__(self, scenario: Scenario, replication: int) -> None:
        assert scenario.queue is not None
        self.scenario, self.replication, self.q = scenario, replication, scenario.queue
        self.now = 0
        self.sequence = 0
        self.agenda: list[tuple[int, int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.rows: list[tuple[int, ...]] = []
        backlog = [self.q.backlog] if self.q.backlog is not None else []
        self.publishers: list[Any] = [*backlog, *self.q.publishers]
        self.published = [0] * len(self.publishers)
        self.streams = ArrivalStreams(arrivals_scenario(scenario), replication)
        self.consumers: list[PlainConsumer] = []
        self.groups: dict[str, list[PlainConsumer]] = {}
        self.able: list[PlainConsumer] = []
        self.available: list[int] = []
        self.ready: dict[int, tuple[list[PlainMessage], list[PlainMessage]]] = {}
        self.busy: set[int] = set()
        self.owner: dict[int, PlainConsumer | None] = {}
        self.active: PlainConsumer | None = None
        self.rebalancing = 0
        self.rebalance_armed = False
        self.joins = 0
        self.inside: list[PlainMessage] = []
        self.outside: list[PlainMessage] = []
        self.blocked: list[PlainMessage] = []
        self.out = 0
        self.dropping = False
        self.outages = [0] * len(self.q.classes)
        self.outage_work: list[WorkTime | None] = [None] * len(self.q.classes)
        self.dead: list[PlainMessage] = []
        self.lives: list[int] = []
        self.low_since: dict[str, int | None] = {}
        self.drawn: dict[str, int] = {}
        self.duplicates = self.parallel = self.requests = 0
        self.area = 0
        self.area_from = 0
        self.backlog_max = self.ready_max = self.oldest = 0
        self.disturbed = 0
        self.level = 0
        self.draining_since: int | None = None
        self.drain: int | None = None
        self._plan()

    # Random numbers.

    def key(self, *names: object) -> int:
        return stream_key(self.scenario.seed, self.replication, "queue", *names)

    def key_of(self, m: PlainMessage | int, purpose: str) -> int:
        number = m if isinstance(m, int) else m.publisher
        return self.key(getattr(self.publishers[number], "name", "/backlog"), purpose)

    @staticmethod
    def number_of(m: PlainMessage, delivery: int) -> int:
        return m.serial * 1024 + delivery % 1024

    @staticmethod
    def chance(key: int, n: int, probability: float) -> bool:
        threshold = min(2**64 - 1, int(probability * 2**64))
        return threshold > 0 and int(uniform_bits(np.uint64(key), n)) <= threshold

    # The agenda.

    def at(self, time: int, rank: int, sub: int, do: Callable[..., None], *what: Any) -> None:
        self.sequence += 1
        heapq.heappush(self.agenda, (time, rank, sub, self.sequence, do, what))

    def later(self, time: int, kind: str, do: Callable[..., None], *what: Any) -> None:
        self.at(time, AGENDA, KINDS.index(kind), do, *what)

    def plan(self, time: int, what: str, do: Callable[..., None], *subject: Any) -> None:
        if time < self.scenario.horizon_ns:
            self.at(time, PLANNED, PLANS.index(what), do, *subject)

    def _plan(self) -> None:
        horizon = self.scenario.horizon_ns
        most = {rule.workers: rule.maximum for rule in self.q.autoscaling}
        for group in self.q.workers:
            found = self.groups[group.name] = []
            for place in range(most.get(group.name, group.count)):
                c = PlainConsumer(len(self.consumers), group)
                self.consumers.append(c)
                found.append(c)
                absences = occurrences(group.absences, horizon)
                if place < group.count and all(start for start, _ in absences):
                    self.plan(0, "join", self.join, c)
                for start, end in absences:
                    self.plan(start, "leave", self.planned_leave, c)
                    self.plan(end, "join", self.planned_join, c)
                for start, end in occurrences(group.pauses, horizon):
                    self.plan(start, "pause_begins", self.pause, c, 1)
                    self.plan(end, "pause_ends", self.pause, c, -1)
        for outage in self.q.outages:
            interval = ClientInterval(outage.start_ns, outage.duration_ns, outage.every_ns)
            for start, end in occurrences((interval,), horizon):
                self.plan(start, "outage_begins", self.outage, outage, 1)
                self.plan(end, "outage_ends", self.outage, outage, -1)
        if self.scenario.warm_up_ns:
            self.plan(self.scenario.warm_up_ns, "warm_up", self.warm_up)
        for number, each in enumerate(self.publishers):
            for kind in self.q.classes:
                length = self.life_of(number, kind)
                if length < INFINITE_NS and length not in self.lives:
                    self.lives.append(length)
            arrivals = getattr(each, "arrivals", None)
            if isinstance(arrivals, b.ClosedArrivals):
                for n in range(arrivals.sources):
                    think = draw(arrivals.think, self.key_of(number, "think"), (1 << 40) + n)
                    self.later(each.start_ns + think, "publish", self.source, number)
        for rule in self.q.autoscaling:
            self.later(rule.every_ns, "tick", self.tick, rule)
        keys = max((first + count for first, count in self.streams.topics), default=1)
        self.lines = {
            b.DeliveryOrder.FIFO: 1,
            b.DeliveryOrder.PRIORITY: self.q.priorities,
            b.DeliveryOrder.KEY: self.q.partitions or keys,
        }[self.q.order]
        for line in range(self.lines):
            self.ready[line] = ([], [])
            self.owner[line] = None

    def life_of(self, publisher: int, kind: b.WorkClass) -> int:
        own = getattr(self.publishers[publisher], "time_to_live_ns", INFINITE_NS)
        return int(min(own, kind.time_to_live_ns, self.q.time_to_live_ns))

    def run(self) -> PlainQueue:
        """Simulate to the horizon."""
        horizon = self.scenario.horizon_ns
        while self.streams.now_ns < horizon:
            for each in self.streams.window(horizon):
                time, size, topic, tag = (int(each[name]) for name in ("time", "bytes", "topic", "tag"))
                self.at(time, ARRIVAL, 0, self.publish, tag >> 8, size, topic)
        while self.agenda and self.agenda[0][0] < horizon:
            time, _, _, _, do, what = heapq.heappop(self.agenda)
            self.now = time
            do(*what)
            self.settle()
        self.now = horizon
        self.integrate()
        self.expire_letters()
        for c in self.consumers:
            self.touch(c)
        if self.draining_since is not None:
            self.drain = max(self.drain or 0, self.now - self.draining_since)
        for m in self.inside:
            self.log(m, 0, "held", m.started - m.born if m.started >= 0 else NEVER, m.entered - m.born)
            if m.state == "ready":
                self.oldest = max(self.oldest, self.now - m.entered)
        for m in self.outside:
            self.log(m, 0, "waiting", NEVER, NEVER)
        for m in self.dead:
            self.log(m, 1, "held", NEVER, 0)
        return self

    def settle(self) -> None:
        while True:
            self.dispatch()
            if self.dropping:
                self.drop_heads()
            if not self.blocked or not self.has_room(self.blocked[0].size):
                break
            self.enter(self.blocked.pop(0))
        self.backlog_max = max(self.backlog_max, len(self.inside))
        self.ready_max = max(self.ready_max, self.ready_count)
        if self.draining_since is not None and len(self.inside) <= self.level:
            self.drain = max(self.drain or 0, self.now - self.draining_since)
            self.draining_since = None

    # Messages come.

    def source(self, number: int) -> None:
        publisher = self.publishers[number]
        if self.now >= publisher.stop_ns:
            return
        first, keys = self.streams.topics[number][0], publisher.keys
        if keys > 1:
            first += int(uniform(np.uint64(self.key_of(number, "key")), self.published[number]) * float(keys))
        assert isinstance(publisher.size, ConstantSize)
        self.publish(number, publisher.size.size_bytes, first)

    def publish(self, number: int, size: int, key: int) -> None:
        publisher = self.publishers[number]
        serial = self.published[number]
        self.published[number] += 1
        names = [each.name for each in self.q.classes]
        if publisher.work_class:
            kind = names.index(publisher.work_class)
        else:
            u = uniform(np.uint64(self.key_of(number, "kind")), serial)
            total, reached, kind = sum(each.weight for each in self.q.classes), 0.0, 0
            for each in self.q.classes[:-1]:
                reached += each.weight
                if reached / total > u:
                    break
                kind += 1
        m = PlainMessage(number, serial, size, kind, self.now)
        m.poison = self.chance(self.key_of(number, "poison"), serial, self.q.classes[kind].poison)
        if self.q.order is b.DeliveryOrder.PRIORITY:
            m.line = self.q.classes[kind].priority
        elif self.q.order is b.DeliveryOrder.KEY:
            if not self.q.partitions:
                m.line = key
            elif publisher.keys == 1:
                m.line = serial % self.q.partitions
            else:
                m.line = int(uniform_bits(np.uint64(0x51ED270B9F652D43), key)) % self.q.partitions
        self.outside.append(m)
        self.offer(m)

    def has_room(self, size: int) -> bool:
        limits = self.q.limits
        counted = self.inside
        if limits.counts is b.LimitScope.READY:
            counted = [m for m in self.inside if m.state == "ready"]
        return not self.beyond(len(counted) + 1, sum(m.size for m in counted) + size)

    def beyond(self, messages: int, size: int) -> bool:
        limits = self.q.limits
        return (0 <= limits.max_messages < messages) or (0 <= limits.max_bytes < size)

    def offer(self, m: PlainMessage) -> None:
        publisher, overflow = self.publishers[m.publisher], self.q.limits.overflow
        reaction = getattr(publisher, "on_refusal", b.RefusalReaction.LOSE)
        self.requests += 1
        blocks = overflow is b.OverflowRule.BLOCK or (
            overflow is b.OverflowRule.REJECT and reaction is b.RefusalReaction.BLOCK
        )
        if self.has_room(m.size) and not (blocks and self.blocked):
            self.enter(m)
        elif blocks:
            self.blocked.append(m)
        elif overflow is b.OverflowRule.DROP_HEAD:
            self.dropping = True
            self.enter(m)
        elif overflow is b.OverflowRule.DROP_TAIL:
            self.lose_outside(m, "discarded")
        elif overflow is b.OverflowRule.REJECT_DEAD_LETTER:
            self.bury(m)
            self.lose_outside(m, "spool_refused")
        elif reaction is b.RefusalReaction.RETRY and (publisher.retries < 0 or m.tries < publisher.retries):
            m.tries += 1
            self.later(self.now + publisher.retry_after_ns, "try_again", self.offer, m)
        else:
            self.lose_outside(m, "spool_refused")

    def enter(self, m: PlainMessage) -> None:
        self.integrate()
        self.outside.remove(m)
        self.inside.append(m)
        m.entered = self.now
        length = self.life_of(m.publisher, self.q.classes[m.kind])
        if length < INFINITE_NS:
            m.due = self.now + length
            self.at(m.due, LIFE, self.lives.index(length), self.expire, m)
        if self.q.delay_ns:
            m.state = "delayed"
            self.at(self.now + self.q.delay_ns, DELAY, 0, self.make_ready, m, False)
        else:
            self.make_ready(m, False)

    def make_ready(self, m: PlainMessage, back: bool) -> None:
        m.state = "ready"
        self.ready[m.line][0 if back else 1].append(m)
        self.list_line(m.line)
        if m.due <= self.now:
            if self.q.expires is b.ExpiryPlace.HEAD:
                self.expire_heads(m.line)
            else:
                self.unlink(m)
                self.end(m, "expired")

    @property
    def ready_count(self) -> int:
        return sum(len(back) + len(fresh) for back, fresh in self.ready.values())

    def head(self, line: int) -> PlainMessage | None:
        back, fresh = self.ready[line]
        return next(iter(back or fresh), None)

    def list_line(self, line: int) -> None:
        """A line with a message that may go: of keys and partitions."""
        if self.q.order is not b.DeliveryOrder.KEY or line in self.busy or self.head(line) is None:
            return
        if not self.q.partitions:
            if line not in self.available:
                self.available.append(line)
            return
        owner = self.owner[line]
        if owner is not None and line not in owner.available:
            owner.available.append(line)
            self.refresh(owner)

    def unlist_line(self, line: int) -> None:
        owner = self.owner.get(line)
        if line in self.available:
            self.available.remove(line)
        if owner is not None and line in owner.available:
            owner.available.remove(line)
            self.refresh(owner)

    def unlink(self, m: PlainMessage) -> None:
        for part in self.ready[m.line]:
            if m in part:
                part.remove(m)
        self.oldest = max(self.oldest, self.now - m.entered)
        if self.head(m.line) is None:
            self.unlist_line(m.line)

    def pull(self, m: PlainMessage) -> None:
        self.unlink(m)
        if self.q.expires is b.ExpiryPlace.HEAD:
            self.expire_heads(m.line)

    def expire_heads(self, line: int) -> None:
        while (m := self.head(line)) is not None and m.due <= self.now:
            self.unlink(m)
            self.end(m, "expired")

    def expire(self, m: PlainMessage) -> None:
        if m.state != "ready":
            return
        if self.q.expires is b.ExpiryPlace.HEAD:
            if self.head(m.line) is m:
                self.expire_heads(m.line)
        else:
            self.unlink(m)
            self.end(m, "expired")

    def drop_heads(self) -> None:
        self.dropping = False
        ready_only = self.q.limits.counts is b.LimitScope.READY
        while self.ready_count:
            counted = [m for m in self.inside if m.state == "ready" or not ready_only]
            if not self.beyond(len(counted), sum(m.size for m in counted)):
                return
            line = max(line for line in self.ready if self.head(line) is not None)
            m = self.head(line)
            assert m is not None
            self.pull(m)
            self.end(m, "discarded")

    # Messages go.

    def integrate(self) -> None:
        self.area += (self.now - self.area_from) * len(self.inside)
        self.area_from = self.now

    def log(self, m: PlainMessage, queue: int, outcome: str, wait: int, enter: int, done: int = NEVER) -> None:
        self.rows.append((m.born, enter, wait, done, m.kind, m.size, m.attempts, queue, OUTCOME_NUMBERS[outcome]))

    def free(self, m: PlainMessage) -> None:
        arrivals = getattr(self.publishers[m.publisher], "arrivals", None)
        if isinstance(arrivals, b.ClosedArrivals):
            think = draw(arrivals.think, self.key_of(m, "think"), m.serial)
            self.later(self.now + think, "publish", self.source, m.publisher)
        m.state = "gone"

    def lose_outside(self, m: PlainMessage, outcome: str) -> None:
        self.log(m, 0, outcome, self.now - m.born, NEVER)
        self.outside.remove(m)
        self.free(m)

    def end(self, m: PlainMessage, outcome: str) -> None:
        self.integrate()
        self.inside.remove(m)
        if m.state == "out" or m.backing_off:
            self.busy.discard(m.line)
            self.list_line(m.line)
        if outcome == "delivered":
            self.log(m, 0, outcome, m.started - m.born, m.entered - m.born, self.now - m.born)
        else:
            self.log(m, 0, outcome, self.now - m.born, m.entered - m.born)
            self.bury(m)
        self.free(m)

    def bury(self, m: PlainMessage) -> None:
        limits = self.q.dead_letters
        if limits is None:
            return
        self.expire_letters()
        letter = PlainMessage(m.publisher, 0, m.size, m.kind, self.now)

        def beyond(count: int, size: int) -> bool:
            return (0 <= limits.max_messages < count) or (0 <= limits.max_bytes < size)

        total = sum(each.size for each in self.dead)
        if limits.overflow is b.DeadOverflow.DROP_TAIL and beyond(len(self.dead) + 1, total + m.size):
            self.log(letter, 1, "discarded", 0, NEVER)
            return
        self.dead.append(letter)
        while beyond(len(self.dead), sum(each.size for each in self.dead)):
            first = self.dead.pop(0)
            self.log(first, 1, "discarded", self.now - first.born, 0)

    def expire_letters(self) -> None:
        limits = self.q.dead_letters
        while limits is not None and self.dead and self.dead[0].born + limits.time_to_live_ns <= self.now:
            self.log(self.dead.pop(0), 1, "expired", limits.time_to_live_ns, 0)

    # Deliveries.

    def refresh(self, c: PlainConsumer) -> None:
        able = (
            c.present
            and not c.draining
            and c.has_credit
            and (c.waiting or not c.polls)
            and (self.q.access is b.QueueAccess.SHARED or self.active is c)
            and (not self.q.partitions or bool(c.available))
        )
        if able and c not in self.able:
            self.able.append(c)
        elif not able and c in self.able:
            self.able.remove(c)

    def next_line(self, c: PlainConsumer) -> int | None:
        if self.q.order is b.DeliveryOrder.KEY:
            return next(iter(c.available if self.q.partitions else self.available), None)
        return max((line for line in self.ready if self.head(line) is not None), default=None)

    def dispatch(self) -> None:
        if self.rebalancing > self.now:
            return
        while self.able:
            c = self.able[0]
            sent = 0
            while sent < (c.group.batch if c.polls else 1):
                line = self.next_line(c)
                full = 0 <= self.q.max_unacknowledged <= self.out
                if line is None or full or not c.has_credit:
                    break
                self.deliver(c, line)
                sent += 1
            if not sent:
                return
            if c.polls:
                c.waiting = c.asking = False
            elif c in self.able:
                self.able.remove(c)
            self.refresh(c)
            if not c.half:
                self.begin(c)

    def deliver(self, c: PlainConsumer, line: int) -> None:
        m = self.head(line)
        assert m is not None
        if self.q.order is b.DeliveryOrder.KEY:
            self.unlist_line(line)
            self.busy.add(line)
        self.pull(m)
        m.state = "out"
        m.deliveries += 1
        m.attempts += 1
        d = m.delivery = PlainDelivery(m, c, m.deliveries, c.presence)
        c.has.append(d)
        c.out += 1
        self.out += 1
        self.watch(d)
        if c.half:
            c.incoming += 1
            self.later(self.now + c.half, "arrive", self.arrive, d)
        else:
            c.buffer.append(d)

    def watch(self, d: PlainDelivery) -> None:
        timeouts = self.q.visibility.timeouts_ns if self.q.visibility is not None else ()
        length = timeouts[min(d.number, len(timeouts)) - 1] if timeouts else INFINITE_NS
        d.stamp += 1
        if length < INFINITE_NS:
            place = min(d.number, len(timeouts)) - 1
            self.at(self.now + length, TIME_OUT, place, self.time_out, d, d.stamp)

    def touch(self, c: PlainConsumer) -> None:
        passed = self.now - c.mark
        c.busy_ns += passed * c.working
        c.present_ns += passed * c.present
        c.paid_ns += passed * c.paid
        c.mark = self.now

    def begin(self, c: PlainConsumer) -> None:
        while c.working < c.group.servers and c.buffer and not c.paused:
            d = c.buffer.pop(0)
            m = d.message
            self.touch(c)
            c.working += 1
            self.parallel += m.working > 0
            m.working += 1
            if m.started < 0:
                m.started = self.now
            d.worked = True
            kind = self.q.classes[m.kind]
            number = self.number_of(m, d.number)
            own = {each.work_class: each.time for each in c.group.works}
            work = own.get(kind.name, kind.work)
            if self.outages[m.kind]:
                d.fails = True
                work = self.outage_work[m.kind] or work
            else:
                d.fails = m.poison or self.chance(self.key_of(m, "fails"), number, kind.fails)
            takes = draw(work, self.key_of(m, "work"), number)
            if c.group.speed != 1.0:
                takes = math.floor(takes / c.group.speed + 0.5)
            d.until = self.now + takes
            self.later(d.until, "work_ends", self.end_work, d)
            heartbeat = self.q.visibility.heartbeat_ns if self.q.visibility is not None else 0
            if heartbeat and d.valid and heartbeat < takes:
                self.later(self.now + heartbeat + c.half, "beat", self.beat, d, heartbeat)
        self.poll(c)

    def poll(self, c: PlainConsumer) -> None:
        if not c.polls or c.asking or not c.present or c.draining or c.paused or c.incoming or c.buffer:
            return
        if c.working >= c.group.servers or not c.has_credit:
            return
        if self.q.access is b.QueueAccess.EXCLUSIVE and self.active is not c:
            return
        c.asking = True
        self.requests += 1
        if c.half:
            self.later(self.now + c.half, "ask", self.ask_arrives, c, c.presence)
        else:
            self.asked(c)

    def ask_arrives(self, c: PlainConsumer, presence: int) -> None:
        if c.present and not c.draining and c.presence == presence:
            self.asked(c)

    def asked(self, c: PlainConsumer) -> None:
        c.waiting = True
        c.wait_until = self.now + c.group.wait_ns
        self.refresh(c)
        if not c.armed:
            c.armed = True
            self.later(c.wait_until, "wait_over", self.wait_over, c)

    def wait_over(self, c: PlainConsumer) -> None:
        c.armed = False
        if not c.waiting:
            return
        if c.wait_until > self.now:
            c.armed = True
            self.later(c.wait_until, "wait_over", self.wait_over, c)
            return
        c.waiting = False
        self.refresh(c)
        self.later(self.now + c.half + c.group.poll_interval_ns, "empty", self.empty, c, c.presence)

    def empty(self, c: PlainConsumer, presence: int) -> None:
        if c.present and not c.draining and c.presence == presence:
            c.asking = False
            self.poll(c)

    def arrive(self, d: PlainDelivery) -> None:
        c = d.consumer
        if c is None:
            return
        c.incoming -= 1
        if c.draining:
            self.give_back(d)
            return
        c.buffer.append(d)
        self.begin(c)

    def give_back(self, d: PlainDelivery) -> None:
        self.free_credit(d)
        if d.valid:
            self.come_back(d, False)
        self.dispose(d)

    def dispose(self, d: PlainDelivery) -> None:
        """The consumer has nothing of it any more."""
        if d.consumer is not None and not d.valid:
            self.free_quietly(d)
            if d in d.consumer.has:
                d.consumer.has.remove(d)

    @staticmethod
    def free_quietly(d: PlainDelivery) -> None:
        if d.credit and d.consumer is not None:
            d.consumer.out -= 1
        d.credit = False

    def free_credit(self, d: PlainDelivery) -> None:
        if d.credit:
            c = d.consumer
            self.free_quietly(d)
            if c is not None:
                self.refresh(c)
                self.poll(c)

    def free_pushed(self, d: PlainDelivery) -> None:
        if d.consumer is not None and not d.consumer.polls:
            self.free_credit(d)

    def invalidate(self, d: PlainDelivery) -> None:
        d.valid = False
        d.stamp += 1
        self.out -= 1
        d.message.delivery = None

    def come_back(self, d: PlainDelivery, rejected: bool) -> None:
        self.invalidate(d)
        self.free_pushed(d)
        m, retry = d.message, self.q.retry
        if 0 < retry.max_deliveries <= m.deliveries:
            self.end(m, "dead")
            return
        wait = 0
        if rejected:
            table = retry.back_off.table()
            wait = table[min(m.deliveries, len(table)) - 1]
            if wait and retry.jitter:
                part = uniform(np.uint64(self.key_of(m, "jitter")), self.number_of(m, m.deliveries))
                wait = int(float(wait) * (1.0 - retry.jitter * part))
        if wait:
            m.state, m.backing_off = "delayed", True
            self.later(self.now + wait, "back_off", self.end_back_off, m)
        else:
            self.ready_again(m)

    def ready_again(self, m: PlainMessage) -> None:
        m.backing_off = False
        self.busy.discard(m.line)
        self.make_ready(m, self.q.retry.to is b.ReturnPlace.HEAD)

    def end_back_off(self, m: PlainMessage) -> None:
        if m.state != "gone":
            self.ready_again(m)

    def time_out(self, d: PlainDelivery, stamp: int) -> None:
        if d.valid and d.stamp == stamp:
            self.come_back(d, False)

    def end_work(self, d: PlainDelivery) -> None:
        c = d.consumer
        if c is None or not d.worked:
            return
        self.touch(c)
        c.working -= 1
        m = d.message
        m.working -= 1
        d.worked = False
        if d.fails:
            c.failed += 1
            if self.q.retry.on_failure is b.FailureReport.SILENT:
                if c.polls:
                    self.free_credit(d)
                self.dispose(d)
            else:
                self.requests += 1
                self.send(d, "reject")
        else:
            c.succeeded += 1
            self.duplicates += m.completed
            m.completed = True
            if c.group.acknowledge_batch == 1:
                self.requests += 1
                self.send(d, "acknowledge")
            else:
                self.gather(c, d)
        if c.draining:
            self.end_draining(c)
        else:
            self.begin(c)

    def gather(self, c: PlainConsumer, d: PlainDelivery) -> None:
        if not c.gathered:
            c.gathered_since = self.now
            if not c.flush_armed:
                c.flush_armed = True
                self.later(self.now + c.group.acknowledge_interval_ns, "flush", self.flush_due, c)
        c.gathered.append(d)
        if len(c.gathered) >= c.group.acknowledge_batch:
            self.flush(c)

    def flush(self, c: PlainConsumer) -> None:
        gathered, c.gathered = c.gathered, []
        if gathered:
            self.requests += 1
        for d in gathered:
            self.send(d, "acknowledge")

    def flush_due(self, c: PlainConsumer) -> None:
        c.flush_armed = False
        if not c.gathered:
            return
        due = c.gathered_since + c.group.acknowledge_interval_ns
        if due > self.now:
            c.flush_armed = True
            self.later(due, "flush", self.flush_due, c)
        else:
            self.flush(c)

    def send(self, d: PlainDelivery, kind: str) -> None:
        c = d.consumer
        assert c is not None
        d.sent = True
        if c.polls:
            self.free_credit(d)
        do = self.acknowledged if kind == "acknowledge" else self.rejected
        if c.half:
            self.later(self.now + c.half, kind, do, d)
        else:
            do(d)

    def acknowledged(self, d: PlainDelivery) -> None:
        d.sent = False
        self.free_pushed(d)
        m = d.message
        late = self.q.visibility.late if self.q.visibility is not None else b.LateAcknowledgmentRule.IGNORED
        if d.valid:
            self.invalidate(d)
            self.end(m, "delivered")
        elif m.state != "gone" and (
            late is b.LateAcknowledgmentRule.ACCEPTED
            or (late is b.LateAcknowledgmentRule.UNTIL_REDELIVERED and d.number == m.deliveries)
        ):
            if m.state == "ready":
                self.pull(m)
            elif m.delivery is not None:
                self.invalidate(m.delivery)
            self.end(m, "delivered")
        self.dispose(d)

    def rejected(self, d: PlainDelivery) -> None:
        d.sent = False
        if d.valid:
            self.come_back(d, True)
        else:
            self.free_pushed(d)
        self.dispose(d)

    def beat(self, d: PlainDelivery, heartbeat: int) -> None:
        c = d.consumer
        if c is None or not c.present or c.presence != d.presence:
            return
        self.requests += 1
        if d.valid:
            self.watch(d)
        if self.now - c.half + heartbeat < d.until:
            self.later(self.now + heartbeat, "beat", self.beat, d, heartbeat)

    # Consumers.

    def planned_leave(self, c: PlainConsumer) -> None:
        self.disturb(True)
        self.part_with(c)

    def planned_join(self, c: PlainConsumer) -> None:
        self.disturb(False)
        self.join(c)

    def join(self, c: PlainConsumer) -> None:
        self.touch(c)
        c.present = c.paid = True
        c.starting = False
        c.presence += 1
        self.joins += 1
        c.joined = self.joins
        self.refresh(c)
        if self.q.partitions or (self.q.access is b.QueueAccess.EXCLUSIVE and self.active is None):
            self.members_changed()
        self.begin(c)

    def part_with(self, c: PlainConsumer) -> None:
        self.leave(c)
        if self.q.partitions or self.active is c:
            if self.active is c:
                self.active = None
            self.members_changed()

    def leave(self, c: PlainConsumer) -> None:
        self.touch(c)
        c.present = c.paid = c.draining = c.asking = c.waiting = False
        c.incoming = c.working = 0
        c.buffer, c.gathered = [], []
        self.refresh(c)
        has, c.has = c.has, []
        for d in has:
            self.free_quietly(d)
            d.consumer = None
            if d.worked:
                d.message.working -= 1
                d.worked = False
            if d.valid and not d.sent and self.q.connection_loss is b.ConnectionLoss.RETURN:
                self.come_back(d, False)

    def members_changed(self) -> None:
        if self.q.rebalance_ns == 0 or self.now == 0:
            self.assign()
            return
        self.rebalancing = self.now + self.q.rebalance_ns
        if not self.rebalance_armed:
            self.rebalance_armed = True
            self.later(self.rebalancing, "rebalanced", self.rebalanced)

    def rebalanced(self) -> None:
        self.rebalance_armed = False
        if self.rebalancing > self.now:
            self.rebalance_armed = True
            self.later(self.rebalancing, "rebalanced", self.rebalanced)
        else:
            self.assign()

    def assign(self) -> None:
        members = [c for c in self.consumers if c.present and not c.draining]
        if self.q.access is b.QueueAccess.EXCLUSIVE:
            if self.active is None and members:
                self.active = min(members, key=lambda c: c.joined)
            if self.active is not None:
                self.refresh(self.active)
                self.poll(self.active)
            return
        for line in range(self.lines):
            self.unlist_line(line)
            self.owner[line] = members[line % len(members)] if members else None
            self.list_line(line)

    def pause(self, c: PlainConsumer, change: int) -> None:
        c.paused += change
        if not c.paused:
            self.begin(c)

    def outage(self, outage: b.WorkOutage, change: int) -> None:
        for number, kind in enumerate(self.q.classes):
            if outage.work_class in ("", kind.name):
                self.outages[number] += change
                if change > 0 or not self.outages[number]:
                    self.outage_work[number] = outage.work if change > 0 else None
        self.disturb(change > 0)

    def disturb(self, begins: bool) -> None:
        if begins:
            if not self.disturbed and self.draining_since is None:
                self.level = len(self.inside)
            self.disturbed += 1
            self.draining_since = None
        else:
            self.disturbed -= 1
            if not self.disturbed:
                self.draining_since = self.now

    def tick(self, rule: b.AutoscalingRule) -> None:
        self.later(self.now + rule.every_ns, "tick", self.tick, rule)
        wanted = min(rule.maximum, max(rule.minimum, -(-len(self.inside) // rule.messages_per_consumer)))
        group = self.groups[rule.workers]
        running = sum((c.present and not c.draining) or c.starting for c in group)
        since = self.low_since.get(rule.workers)
        since = None if wanted >= running else self.now if since is None else since
        self.low_since[rule.workers] = since
        for c in group:
            if running < wanted and not c.present and not c.starting:
                running += 1
                self.touch(c)
                c.paid = c.starting = True
                n = self.drawn.get(rule.workers, 0)
                self.drawn[rule.workers] = n + 1
                takes = draw(rule.start_up, self.key(rule.workers, "start-up"), n)
                self.later(self.now + takes, "started", self.join, c)
        if since is not None and self.now - since >= rule.scale_in_delay_ns:
            for c in reversed(group):
                if running > wanted and c.present and not c.draining:
                    running -= 1
                    self.begin_draining(c)

    def begin_draining(self, c: PlainConsumer) -> None:
        c.draining, c.waiting = True, False
        self.refresh(c)
        buffer, c.buffer = c.buffer, []
        for d in buffer:
            self.give_back(d)
        if self.q.partitions or self.active is c:
            if self.active is c:
                self.active = None
            self.members_changed()
        self.end_draining(c)

    def end_draining(self, c: PlainConsumer) -> None:
        if not c.working:
            self.flush(c)
            self.leave(c)

    def warm_up(self) -> None:
        for c in self.consumers:
            self.touch(c)
            c.busy_ns = c.present_ns = c.paid_ns = c.succeeded = c.failed = 0
        for m in [*self.inside, *self.outside]:
            m.attempts = min(m.attempts, 1)
        self.area, self.area_from = 0, self.now
        self.duplicates = self.parallel = self.requests = self.oldest = 0
        self.drain = None
        self.backlog_max, self.ready_max = len(self.inside), self.ready_count


OUTCOME_NUMBERS = {
    "delivered": 0, "discarded": 1, "expired": 3, "dead": 4, "held": 5, "waiting": 6, "spool_refused": 9,
}  # fmt: skip
