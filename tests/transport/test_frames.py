"""Frames: what is packed is what the generated type reads, and nothing that comes in can break the parser."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.messages import AckResponse, Delivery
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.transport.dds.wire import frames, raw
from qsctl.transport.dds.wire.wire_types import WireAcknowledgmentFrame, WireFrame

guids = st.binary(min_size=16, max_size=16).map(Guid)
identities = st.builds(SampleIdentity, guids, st.integers(0, 2**63 - 1))
lifespans = st.one_of(st.just(INFINITE_NS), st.integers(0, (2**31 - 1) * 10**9 - 1))
samples = st.tuples(
    identities,
    st.binary(max_size=40),
    guids,
    guids,
    st.just(NIL_IDENTITY) | identities,
    guids,
    st.integers(0, 2**32 - 1),
    lifespans,
)


def test_the_binding_carries_bytes_here_and_lays_them_out_as_we_do() -> None:
    assert raw.uses_raw_functions()
    assert raw.batching_functions() is not None


@given(st.lists(samples, max_size=5))
def test_a_frame_gives_back_what_was_packed(given_samples: list[tuple[object, ...]]) -> None:
    frame = frames.frame_of([frames.pack_sample(*each) for each in given_samples])  # type: ignore[arg-type]
    parsed = frames.parse_frame(frame, "P", "T")
    assert [
        (
            each.identity,
            each.payload,
            each.source_guid,
            each.related_source_guid,
            each.related_identity,
            each.related_reader_guid,
            each.flags | each.attempt << 16,
            each.lifespan_ns,
        )
        for each in parsed
    ] == given_samples
    assert {(each.participant, each.topic_name) for each in parsed} <= {("P", "T")}


@given(st.lists(samples, max_size=3))
def test_the_hand_packed_bytes_are_those_of_the_type(given_samples: list[tuple[object, ...]]) -> None:
    frame = frames.frame_of([frames.pack_sample(*each) for each in given_samples])  # type: ignore[arg-type]
    by_type = bytes(WireFrame.deserialize(frame).serialize(use_version_2=False))
    assert frame.startswith(by_type)
    assert not frame[len(by_type) :].strip(b"\0")


@given(st.lists(samples, max_size=5))
def test_deliveries_are_packed_like_any_sample_and_related_to_their_consumer(
    given_samples: list[tuple[Any, ...]],
) -> None:
    deliveries = [
        Delivery("Q", reader, 0, identity, payload, source, related_source, related, NIL_GUID, flags)
        for identity, payload, source, related_source, related, reader, flags, _ in given_samples
    ]
    assert frames.pack_deliveries(deliveries) == [frames.pack_sample(*each[:7]) for each in given_samples]
    frame = frames.frame_of(frames.pack_deliveries(deliveries))
    assert [each.identity for each in frames.parse_deliveries(frame, "Q", NIL_GUID)] == [
        each[0] for each in given_samples
    ]


@given(st.lists(st.tuples(samples, st.integers(1, 2**31)), min_size=1, max_size=5))
def test_a_consumer_is_sent_the_number_of_the_attempt(given_samples: list[tuple[tuple[Any, ...], int]]) -> None:
    deliveries = [
        Delivery("Q", reader, 0, identity, payload, source, related_source, related, NIL_GUID, flags, attempt)
        for (identity, payload, source, related_source, related, reader, flags, _), attempt in given_samples
    ]
    frame = frames.frame_of(frames.pack_deliveries(deliveries))
    assert [each.attempt for each in frames.parse_deliveries(frame, "Q", NIL_GUID)] == [
        min(attempt, 2**31 - 2) for _, attempt in given_samples
    ]


def test_a_lifespan_is_no_attempt() -> None:
    packed = frames.pack_sample(SampleIdentity(Guid(b"w" * 16), 1), b"x", lifespan_ns=3 * 10**9 + 7)
    (delivery,) = frames.parse_deliveries(frames.frame_of([packed]), "Q", NIL_GUID)
    assert delivery.attempt == 1


@given(
    guids,
    st.text(max_size=40).filter(lambda name: "\0" not in name),
    st.lists(st.tuples(identities, st.integers(0, 1)), max_size=6),
)
def test_answers_give_back_what_was_packed_and_are_those_of_the_type(
    sender: Guid, queue: str, answers: list[tuple[SampleIdentity, int]]
) -> None:
    packed = frames.answers_of(sender, queue, [frames.pack_answer(*each) for each in answers])
    identities, responses = [each for each, _ in answers], [each for _, each in answers]
    assert frames.parse_answers(packed) == (sender, queue, identities, responses)
    assert bytes(WireAcknowledgmentFrame.deserialize(packed).serialize(use_version_2=False)) == packed


@given(st.binary(max_size=300))
def test_no_octets_do_more_than_be_refused(octets: bytes) -> None:
    for data in (octets, frames.ENCAPSULATION + octets):
        for parse in (lambda: frames.parse_frame(data, "P", "T"), lambda: frames.parse_answers(data)):  # noqa: B023
            try:
                parse()
            except frames.MalformedFrame as refusal:
                assert str(refusal)


@given(st.lists(samples, min_size=1, max_size=3), st.data())
def test_a_frame_cut_anywhere_is_refused(given_samples: list[tuple[object, ...]], data: st.DataObject) -> None:
    frame = frames.frame_of([frames.pack_sample(*each) for each in given_samples])  # type: ignore[arg-type]
    padding = 3
    cut = data.draw(st.integers(0, len(frame) - 1 - padding))
    with pytest.raises(frames.MalformedFrame):
        frames.parse_frame(frame[:cut], "P", "T")


@pytest.mark.parametrize("at", ["identity", "related identity"])
def test_a_negative_number_is_refused_before_anything_stores_it(at: str) -> None:
    number = SampleIdentity(Guid(b"w" * 16), 7)
    negative = SampleIdentity(Guid(b"w" * 16), -1)
    identity, related = (negative, number) if at == "identity" else (number, negative)
    frame = frames.frame_of([frames.pack_sample(identity, b"x", related_identity=related)])
    with pytest.raises(frames.MalformedFrame, match="sequence number is -1"):
        frames.parse_frame(frame, "P", "T")


def test_a_claim_of_four_billion_samples_costs_nothing() -> None:
    with pytest.raises(frames.MalformedFrame, match="claims 4294967295 samples"):
        frames.parse_frame(frames.ENCAPSULATION + b"\xff\xff\xff\xff" + bytes(200), "P", "T")
    with pytest.raises(frames.MalformedFrame, match="acknowledgments"):
        frames.parse_answers(frames.ENCAPSULATION + bytes(16) + b"\xff\xff\xff\xff" + bytes(200))


@given(st.lists(st.binary(min_size=4, max_size=20_000), max_size=40))
def test_frames_keep_the_order_and_stay_below_one_message(packed: list[bytes]) -> None:
    cut = frames.frames_of(packed)
    assert sum(count for _, count in cut) == len(packed)
    assert b"".join(frame[8:] for frame, _ in cut) == b"".join(packed)
    assert all(len(frame) <= frames.FRAME_BYTES_TARGET + 8 or count == 1 for frame, count in cut)


@pytest.mark.parametrize("response", AckResponse)
def test_a_service_reads_every_response_that_a_consumer_gives(response: AckResponse) -> None:
    packed = frames.answers_of(b"c" * 16, "Orders@S", [frames.pack_answer(NIL_IDENTITY, response)])
    assert frames.parse_consumer_answers(packed).responses == [response]


def test_a_response_that_no_consumer_gives_is_malformed() -> None:
    packed = frames.answers_of(b"c" * 16, "Orders@S", [frames.pack_answer(NIL_IDENTITY, len(AckResponse))])
    with pytest.raises(frames.MalformedFrame, match="a response is 3"):
        frames.parse_consumer_answers(packed)
