"""What a metadata body says, what it leaves out because it is the default, and what it says together."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies
from msgspec.structs import replace

from qsctl.core.records import (
    Assigned,
    AssignedRun,
    DeadLetterReason,
    Enqueued,
    EnqueuedRun,
    Record,
    RemovalCause,
    Removed,
    RemovedRun,
    StreamRecord,
    one_by_one,
)
from qsctl.identity import Guid, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.service.stores._queue_codec import QUEUE_CODEC, RUN_PAYLOAD_BYTES_MAX, RUN_SAMPLES_MAX
from qsctl.storage.codec import Positions, UnreadableRecord, pack_payloads, unpack_payloads
from tests.storage.contract import batches

ONE, OTHER = Guid(b"1" * 16), Guid(b"2" * 16)
PLAIN = Enqueued("P/S/orders", 7, SampleIdentity(ONE, 9), 1_000, INFINITE_NS)
RARE = {
    "source_guid": OTHER,
    "related_source_guid": OTHER,
    "related_identity": SampleIdentity(OTHER, 3),
    "related_reader_guid": OTHER,
    "flags": 4,
    "dead_letter_from": "Order@S",
    "dead_letter_reason": DeadLetterReason.LIFESPAN,
}


@pytest.mark.parametrize("field", RARE)
def test_every_field_is_read_back_whichever_it_is(field: str) -> None:
    record = replace(PLAIN, **{field: RARE[field]})
    (body,) = QUEUE_CODEC.encode([record]).bodies
    assert list(QUEUE_CODEC.decode(body)) == [record]


def test_a_dead_letter_is_read_back_and_begins_a_position() -> None:
    letter = replace(PLAIN, **RARE, dead_letter_position=5, dead_letter_incarnation=Incarnation(2**63 - 1))
    earlier = replace(PLAIN, **RARE, dead_letter_position=5)
    sample = replace(PLAIN, position=9)
    encoded = QUEUE_CODEC.encode([letter, replace(earlier, position=8), sample])
    assert list(QUEUE_CODEC.decode_all(encoded.bodies)) == [letter, replace(earlier, position=8), sample]
    found = Positions()
    QUEUE_CODEC.read_positions(encoded.bodies, found)
    assert (found.begun, found.carrier_count) == ({7, 8, 9}, 3)


def test_a_sample_without_anything_rare_takes_half_the_metadata() -> None:
    plain, full = QUEUE_CODEC.encode([PLAIN, replace(PLAIN, **RARE)]).bodies
    assert list(QUEUE_CODEC.decode(plain)) == [PLAIN]
    assert 2 * len(plain) <= len(full)


def test_the_payload_is_separate() -> None:
    encoded = QUEUE_CODEC.encode([replace(PLAIN, payload=b"user data")])
    assert encoded.data == [b"user data"]
    assert list(QUEUE_CODEC.decode(encoded.bodies[0])) == [PLAIN]


QUEUE = "P/S/orders"


def run_of(count: int, consumer: Guid | None = None, first: int = 7) -> list[Record]:
    """Samples like the plain one that follow one another, each assigned to a consumer where one is given."""
    records: list[Record] = []
    for at in range(first, first + count):
        records.append(replace(PLAIN, position=at, identity=SampleIdentity(ONE, at + 2)))
        if consumer is not None:
            records.append(Assigned(QUEUE, at, consumer, 1))
    return records


def removed(position: int, cause: RemovalCause = RemovalCause.DELIVERED) -> Removed:
    return Removed(QUEUE, position, cause)


@pytest.mark.parametrize(
    ("records", "body_count"),
    [
        ([PLAIN, Assigned(QUEUE, 7, ONE, 1)], 1),
        ([PLAIN, Assigned(QUEUE, 7, ONE, 2)], 2),
        ([PLAIN, Assigned(QUEUE, 6, ONE, 1)], 2),
        ([replace(PLAIN, flags=4), Assigned(QUEUE, 7, ONE, 1)], 2),
        ([Assigned(QUEUE, 7, ONE, 1), PLAIN], 2),
        ([removed(3), removed(5), removed(4)], 1),
        ([removed(3), removed(5, RemovalCause.EXPIRED), removed(4)], 3),
        ([removed(3), PLAIN, Assigned(QUEUE, 7, ONE, 1), removed(7), removed(8)], 3),
        (run_of(3), 1),
        (run_of(3, ONE), 1),
        ([*run_of(2, ONE), *run_of(2, OTHER, 9)], 1),
        ([*run_of(2, ONE), *run_of(2, None, 9)], 2),
        ([*run_of(2), replace(PLAIN, position=9, identity=SampleIdentity(ONE, 12))], 2),
        ([*run_of(2), replace(PLAIN, position=9, identity=SampleIdentity(OTHER, 11))], 2),
        ([*run_of(2), replace(PLAIN, position=10, identity=SampleIdentity(ONE, 11))], 2),
        ([*run_of(2), replace(run_of(1, None, 9)[0], enqueued_at_ns=1_001)], 2),
        ([*run_of(2), replace(run_of(1, None, 9)[0], expires_at_ns=5_000)], 2),
        ([*run_of(2), replace(run_of(1, None, 9)[0], source_guid=OTHER)], 2),
        ([*run_of(2), replace(run_of(1, None, 9)[0], queue="P/S/bills")], 2),
        ([*run_of(2), replace(run_of(1, None, 9)[0], flags=4)], 2),
        ([*run_of(2), replace(run_of(1, None, 9)[0], flags=4), *run_of(2, None, 10)], 3),
        (run_of(RUN_SAMPLES_MAX), 1),
        (run_of(RUN_SAMPLES_MAX + 1), 2),
    ],
)
def test_what_happens_together_is_one_body(records: list[Record], body_count: int) -> None:
    bodies = QUEUE_CODEC.encode(records).bodies
    assert len(bodies) == body_count
    assert [record for body in bodies for record in QUEUE_CODEC.decode(body)] == records


@given(batches())
def test_bodies_keep_every_record_in_order_with_begun_and_ended_positions(drawn: list[list[Record]]) -> None:
    for batch in drawn:
        encoded = QUEUE_CODEC.encode(batch)
        without_payloads = [replace(each, payload=b"") if isinstance(each, Enqueued) else each for each in batch]
        assert [record for body in encoded.bodies for record in QUEUE_CODEC.decode(body)] == without_payloads
        assert QUEUE_CODEC.decode_all(encoded.bodies) == without_payloads
        found = Positions()
        QUEUE_CODEC.read_positions(encoded.bodies, found)
        assert found.begun == {each.position for each in batch if isinstance(each, Enqueued)}
        assert found.ended == set(encoded.ended) == {each.position for each in batch if isinstance(each, Removed)}


def test_a_body_has_no_more_payload_than_a_page() -> None:
    half = bytes(RUN_PAYLOAD_BYTES_MAX // 2)
    encoded = QUEUE_CODEC.encode([replace(each, payload=half) for each in run_of(5)])
    assert encoded.counts == [2, 2, 1]
    assert encoded.carriers == [0, 0, 1, 1, 2]
    assert encoded.piece_count == 5


@pytest.mark.parametrize(
    ("count", "consumers"), [(0, []), (-1, []), (2**40, []), (RUN_SAMPLES_MAX + 1, []), (3, [ONE, ONE])]
)
def test_a_run_that_contradicts_itself_is_refused(count: int, consumers: list[Guid]) -> None:
    run = [9, QUEUE, 7, count, ONE, 9, 1_000, INFINITE_NS, ONE, consumers]
    body = msgspec.msgpack.encode(run)
    with pytest.raises(UnreadableRecord):
        QUEUE_CODEC.decode(body)
    with pytest.raises(UnreadableRecord):
        QUEUE_CODEC.decode_all([body])
    if not consumers:
        with pytest.raises(UnreadableRecord):
            QUEUE_CODEC.read_positions([body], Positions())


@given(strategies.lists(strategies.binary(max_size=9), min_size=1, max_size=9))
def test_the_payloads_of_a_body_are_separated(payloads: list[bytes]) -> None:
    packed = pack_payloads(payloads)
    assert list(unpack_payloads(packed, len(payloads))) == payloads
    if len(payloads) > 1:
        for damaged in (packed[:-1], packed + b"x", b""):
            with pytest.raises(UnreadableRecord):
                unpack_payloads(damaged, len(payloads))


def enqueued_run(payloads: list[bytes], first: int = 7, **rare: object) -> EnqueuedRun:
    members = {"source_guid": PLAIN.source_guid, "flags": 0} | rare
    return EnqueuedRun(
        QUEUE,
        first,
        SampleIdentity(ONE, first + 2),
        tuple(payloads),
        1_000,
        INFINITE_NS,
        related_source_guid=PLAIN.related_source_guid,
        related_identity=PLAIN.related_identity,
        related_reader_guid=PLAIN.related_reader_guid,
        **members,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("consumers", [(), (ONE,), (ONE, OTHER), (ONE, OTHER, ONE)])
@pytest.mark.parametrize("sizes", [(3,) * 5, (256,) * 70, (1,) * 200, (5_000, 3, 4_090, 4, 3, 5_000), (0,) * 65])
def test_a_run_is_stored_as_its_records_are(sizes: tuple[int, ...], consumers: tuple[Guid, ...]) -> None:
    run = enqueued_run([bytes([at]) * size for at, size in enumerate(sizes)])
    if not consumers:
        assert QUEUE_CODEC.encode([run]) == QUEUE_CODEC.encode(run.singles())
        return
    assigned = AssignedRun(QUEUE, 7, run.count, consumers)
    in_turn = [each for pair in zip(run.singles(), assigned.singles(), strict=True) for each in pair]
    assert QUEUE_CODEC.encode([run, assigned]) == QUEUE_CODEC.encode(in_turn)


def test_removed_runs_are_stored_as_their_records_are() -> None:
    runs = [RemovedRun(QUEUE, position, 4, 3, RemovalCause.DELIVERED) for position in (7, 8)]
    singles = [single for each in runs for single in each.singles()]
    assert [each.position for each in singles] == [7, 10, 13, 16, 8, 11, 14, 17]
    assert QUEUE_CODEC.encode(runs) == QUEUE_CODEC.encode(singles)


several = strategies.lists(
    strategies.sampled_from(
        [
            enqueued_run([b"x" * 900] * 9, flags=4),
            enqueued_run([b"x" * 900] * 9, first=20),
            AssignedRun(QUEUE, 20, 3, (ONE,)),
            AssignedRun(QUEUE, 23, 5, (ONE, OTHER)),
            AssignedRun(QUEUE, 40, 2, (ONE, OTHER)),
            RemovedRun(QUEUE, 20, 5, 2, RemovalCause.DELIVERED),
            RemovedRun(QUEUE, 7, 2, 1, RemovalCause.DELIVERED),
            replace(PLAIN, position=40, payload=b"one"),
            Assigned(QUEUE, 40, ONE, 1),
            removed(40, RemovalCause.EXPIRED),
        ]
    ),
    max_size=12,
)


@given(several)
def test_runs_and_single_records_are_read_back_in_the_order_of_each_sample(records: list[StreamRecord]) -> None:
    encoded = QUEUE_CODEC.encode(records)
    singles = list(one_by_one(records))
    read = QUEUE_CODEC.decode_all(encoded.bodies)
    assert sum(encoded.counts) == len(read) == len(singles)
    for position in {each.position for each in singles}:  # type: ignore[union-attr]
        of_it = [each for each in singles if each.position == position]  # type: ignore[union-attr]
        bare = [replace(each, payload=b"") if isinstance(each, Enqueued) else each for each in of_it]
        assert [each for each in read if each.position == position] == bare
    assert encoded.positions == [each.position for each in singles if isinstance(each, Enqueued)]
    assert encoded.data == [each.payload for each in singles if isinstance(each, Enqueued)]
    assert encoded.ended == [each.position for each in singles if isinstance(each, Removed)]
    bodies = [QUEUE_CODEC.decode(body) for body in encoded.bodies]
    of_body = [at for at, found in enumerate(bodies) for each in found if isinstance(each, Enqueued)]
    assert encoded.carriers == of_body
