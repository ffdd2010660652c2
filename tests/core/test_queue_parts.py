"""The parts of a queue, each against what anybody can check by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.events import HighWatermarkPassed, LowWatermarkPassed, QueueFilled
from qsctl.core.queue._agenda import Agenda
from qsctl.core.queue._delivery_groups import DeliveryGroup
from qsctl.core.queue._held import RETIRED_IDENTITIES_MAX, Held
from qsctl.core.queue._lifespan import Lifespans, QueueLifespan
from qsctl.core.queue._limits import SAMPLE_METADATA_BYTES, Limits
from qsctl.core.queue.consumer import Consumer, Ring
from qsctl.core.queue.outbox import Outbox
from qsctl.core.queue.sample import Cause, Sample
from qsctl.core.queue.settings import ResourceLimitSettings, SharedReaderQueueSettings
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS


def sample(position: int, expires: int = INFINITE_NS) -> Sample:
    made = Sample(position, SampleIdentity(NIL_GUID, position), b"", 0, 0, expires)
    made.move(Cause.STORE)
    return made


def settle(one: Sample) -> None:
    one.move(Cause.FLUSH)


# The ring.


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("join"), st.booleans()),
            st.tuples(st.just("leave"), st.integers(0, 9)),
            st.tuples(st.just("switch"), st.integers(0, 9)),
            st.tuples(st.just("choose"), st.integers(-1, 9)),
        ),
        max_size=60,
    )
)
def test_the_ring_serves_like_a_walk_around_a_table(steps: list[tuple[str, int]]) -> None:
    ring, table, last, joined = Ring(), list[Consumer](), -1, 0
    for step, number in steps:
        if step == "join":
            joined += 1
            consumer = Consumer(Guid(joined.to_bytes(16, "big")), NIL_GUID, -1)
            consumer.reception_enabled = bool(number)
            ring.add(consumer)
            table.append(consumer)
        elif step == "choose":
            avoided = table[number % len(table)] if table and number >= 0 else None
            turn = table[last + 1 :] + table[: last + 1]
            able = [consumer for consumer in turn if consumer.reception_enabled]
            expected = next(iter([one for one in able if one is not avoided] or able), None)
            assert ring.choose(avoided) is expected
            if expected is not None:
                last = table.index(expected)
        elif table:
            consumer = table[number % len(table)]
            if step == "leave":
                ring.remove(consumer)
                last -= table.index(consumer) <= last
                table.remove(consumer)
            else:
                consumer.reception_enabled = not consumer.reception_enabled
                ring.review(consumer)
        assert len(ring) == len(table)


# The group.


def test_a_group_gives_returned_samples_first_and_in_order() -> None:
    group, samples = DeliveryGroup(), [sample(position) for position in range(1, 6)]
    for one in samples:
        group.append(one)
    for one in samples[:3]:
        assert group.first() is one
        group.pop(one)
    for one in (samples[2], samples[0]):
        group.put_back(one)
    taken = []
    while group.waiting_count:
        taken.append(group.first().position)
        group.pop(group.first())
    assert taken == [1, 3, 4, 5]


def test_a_delivery_group_without_consumers_does_not_keep_dead_samples() -> None:
    group = DeliveryGroup()
    for position in range(10_000):
        one = sample(position)
        group.append(one)
        settle(one)
        group.drop()
    assert len(group._fresh) < 100
    assert group.waiting() == []


# Lifespans.


def test_a_producers_lifespan_wins_even_when_it_is_longer() -> None:
    lifespan = QueueLifespan(100)
    assert lifespan.expiry(10, 5, 20) == 15
    assert lifespan.expiry(10, 500, 20) == 510
    assert lifespan.expiry(10, INFINITE_NS, 20) == 120
    assert lifespan.expiry(10, INFINITE_NS, 21) == 121
    assert QueueLifespan(INFINITE_NS).expiry(10, INFINITE_NS, 20) == INFINITE_NS


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=200), st.integers(0, 50))
def test_samples_expire_in_the_order_of_their_ends(given_samples: list[tuple[int, bool]], now: int) -> None:
    lifespans, living = Lifespans(), list[Sample]()
    for position, (expires, settled) in enumerate(given_samples):
        one = sample(position, expires)
        lifespans.enter(one)
        if settled:
            settle(one)
            lifespans.leave()
        else:
            living.append(one)
    assert lifespans.next_deadline() == min((one.expires_at_ns for one in living), default=INFINITE_NS)
    due = sorted((one.expires_at_ns, one.position) for one in living if one.expires_at_ns <= now)
    assert [(one.expires_at_ns, one.position) for one in lifespans.overdue(now)] == due


def test_acknowledged_samples_of_a_long_lifespan_are_dropped_from_the_heap() -> None:
    lifespans = Lifespans()
    for position in range(10_000):
        one = sample(position, 10**15 - position % 7)
        lifespans.enter(one)
        settle(one)
        lifespans.leave()
    assert len(lifespans._row) + len(lifespans._heap) < 200


# What is held.


def test_the_window_of_retired_identities_is_bounded() -> None:
    held = Held()
    for position in range(1, RETIRED_IDENTITIES_MAX + 11):
        one = sample(position)
        held.enter(one)
        held.retire(one)
    assert len(held) == 0
    assert len(held.known) == RETIRED_IDENTITIES_MAX
    assert SampleIdentity(NIL_GUID, 10) not in held.known
    assert SampleIdentity(NIL_GUID, 11) in held.known
    assert held.next_position == RETIRED_IDENTITIES_MAX + 11


# Limits.


def limits(**given_limits: int) -> tuple[Limits, Outbox]:
    outbox = Outbox()
    settings = SharedReaderQueueSettings("q", "Q", limits=ResourceLimitSettings(**given_limits))
    return Limits("q", settings, outbox), outbox


@given(st.integers(1, 40), st.integers(0, 100), st.integers(0, 100), st.lists(st.booleans(), max_size=200))
def test_watermarks_count_crossings_of_the_exact_share(maximum: int, high: int, low: int, steps: list[bool]) -> None:
    kept, outbox = limits(max_count=maximum, high_watermark_percent=high, low_watermark_percent=low)
    count, highs, lows = 0, 0, 0
    for grows in steps:
        after = min(count + 1, maximum) if grows else max(count - 1, 0)
        if after == count:
            continue
        highs += count * 100 <= high * maximum < after * 100
        lows += count * 100 >= low * maximum > after * 100
        count = after
        (kept.grow if grows else kept.shrink)(0, 0)
    assert sum(isinstance(event, HighWatermarkPassed) for event in outbox.events) == highs
    assert sum(isinstance(event, LowWatermarkPassed) for event in outbox.events) == lows


def test_a_queue_fills_up_by_bytes_when_not_even_an_empty_sample_fits() -> None:
    kept, outbox = limits(max_in_memory_bytes=3 * SAMPLE_METADATA_BYTES)
    kept.grow(0, 0)
    kept.grow(0, 0)
    assert outbox.events == []
    assert kept.refusal_of(0, 0) is None
    kept.grow(0, 0)
    assert outbox.events == [QueueFilled(0, "q")]
    assert kept.refusal_of(0, 0) is not None


# The agenda.


class Sleeper:
    """Wakes at each of its deadlines and notes the time."""

    def __init__(self, deadlines: list[int]) -> None:
        self.wakes_at_ns = INFINITE_NS
        self.deadlines = sorted(deadlines)
        self.woken: list[int] = []

    def next_deadline(self) -> int | None:
        return self.deadlines[0] if self.deadlines else None

    def advance(self, now: int) -> None:
        self.woken.append(now)
        self.deadlines = [deadline for deadline in self.deadlines if deadline > now]


@given(st.lists(st.lists(st.integers(1, 50), max_size=6), max_size=6), st.data())
def test_parts_are_woken_on_time_and_only_when_due(all_deadlines: list[list[int]], data: st.DataObject) -> None:
    agenda, sleepers = Agenda(), [Sleeper(deadlines) for deadlines in all_deadlines]
    for one in sleepers:
        if one.deadlines:
            agenda.wake(one, one.deadlines[0])
    for one in sleepers:
        # Some deadlines are met in time and go away; the agenda is not told.
        one.deadlines = [deadline for deadline in one.deadlines if data.draw(st.booleans())]
    remaining = [sorted(set(one.deadlines)) for one in sleepers]
    while (now := agenda.next_deadline()) is not None:
        assert now == min(one.deadlines[0] for one in sleepers if one.deadlines)
        agenda.advance(now)
    assert [one.woken for one in sleepers] == remaining


def test_a_forgotten_sleeper_is_not_woken() -> None:
    agenda, one = Agenda(), Sleeper([5])
    agenda.wake(one, 5)
    agenda.forget(one)
    agenda.advance(10)
    assert agenda.next_deadline() is None
    assert one.woken == []
