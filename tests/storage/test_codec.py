"""What a metadata body says, what it leaves out because it is the default, and what it says together."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from qsctl.core.records import Assigned, DeadLetterReason, Enqueued, Record, RemovalCause, Removed
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.service.queue_codec import QUEUE_CODEC
from qsctl.storage.codec import Positions
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


def test_a_sample_without_anything_rare_takes_half_the_metadata() -> None:
    plain, full = QUEUE_CODEC.encode([PLAIN, replace(PLAIN, **RARE)]).bodies
    assert list(QUEUE_CODEC.decode(plain)) == [PLAIN]
    assert 2 * len(plain) <= len(full)


def test_the_payload_stands_apart() -> None:
    encoded = QUEUE_CODEC.encode([replace(PLAIN, payload=b"user data")])
    assert encoded.data == [b"user data"]
    assert list(QUEUE_CODEC.decode(encoded.bodies[0])) == [PLAIN]


QUEUE = "P/S/orders"


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
    ],
)
def test_what_happens_together_is_one_body(records: list[Record], body_count: int) -> None:
    bodies = QUEUE_CODEC.encode(records).bodies
    assert len(bodies) == body_count
    assert [record for body in bodies for record in QUEUE_CODEC.decode(body)] == records


@given(batches())
def test_bodies_keep_every_record_and_their_order_and_tell_who_comes_and_goes(drawn: list[list[Record]]) -> None:
    for batch in drawn:
        encoded = QUEUE_CODEC.encode(batch)
        without_payloads = [replace(each, payload=b"") if isinstance(each, Enqueued) else each for each in batch]
        assert [record for body in encoded.bodies for record in QUEUE_CODEC.decode(body)] == without_payloads
        assert QUEUE_CODEC.decode_all(encoded.bodies) == without_payloads
        found = Positions()
        QUEUE_CODEC.read_positions(encoded.bodies, found)
        assert found.begun == {each.position for each in batch if isinstance(each, Enqueued)}
        assert found.ended == set(encoded.ended) == {each.position for each in batch if isinstance(each, Removed)}
