"""A dead letter is opened, or shown as it is; a letter that cannot be read costs nothing but itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.client._dead_letters import opened
from qsctl.core.messages import Delivery
from qsctl.core.records import DeadLetterReason
from qsctl.identity import NIL_GUID, SampleIdentity, guid_from_hex
from qsctl.transport.dds.wire.bodies import dead_letter_octets

SAMPLE = SampleIdentity(guid_from_hex("7"), 3)
LETTER = dead_letter_octets("P/S/Orders", SAMPLE, DeadLetterReason.MAX_RETRIES, b"hello")


def test_the_sample_inside_is_what_is_delivered() -> None:
    delivery = opened(Delivery("P/S/Dead", NIL_GUID, 0, SAMPLE, LETTER))
    assert (delivery.payload, delivery.dead_letter_from) == (b"hello", "P/S/Orders")
    assert (delivery.dead_letter_reason, delivery.dead_letter_identity) == (DeadLetterReason.MAX_RETRIES, SAMPLE)


@pytest.mark.parametrize("size", range(len(LETTER)))
def test_a_letter_that_was_cut_is_shown_as_it_is(size: int) -> None:
    delivery = Delivery("P/S/Dead", NIL_GUID, 0, SAMPLE, LETTER[:size])
    assert opened(delivery) == delivery


@given(st.binary(max_size=200))
def test_any_octets_are_delivered(octets: bytes) -> None:
    assert opened(Delivery("P/S/Dead", NIL_GUID, 0, SAMPLE, octets)).identity == SAMPLE
