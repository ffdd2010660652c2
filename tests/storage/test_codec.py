"""What a metadata record says, and what it leaves out because it is the default."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from qsctl.core.records import DeadLetterReason, Enqueued
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.storage.codec import decode_metadata, encode

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
    (metadata,) = encode([record]).metadata
    assert decode_metadata(metadata) == record


def test_a_sample_without_anything_rare_takes_half_the_metadata() -> None:
    plain, full = encode([PLAIN, replace(PLAIN, **RARE)]).metadata
    assert decode_metadata(plain) == PLAIN
    assert 2 * len(plain) <= len(full)


def test_the_payload_stands_apart() -> None:
    encoded = encode([replace(PLAIN, payload=b"user data")])
    assert encoded.data == [b"user data"]
    assert decode_metadata(encoded.metadata[0]) == PLAIN
