"""Frames: what is packed is what the generated type reads, and nothing that comes in can break the parser."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.client.consumer import Arrivals, QueueEnd, SampleAnswers
from qsctl.core.client.producer import OutgoingRun, SampleTraits
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    Delivery,
    RunAccepted,
    RunAcknowledgment,
    RunDelivery,
    SampleFlag,
    Write,
    WriteAcknowledgment,
    WriteRun,
)
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.transport.dds.wire import frames, raw
from qsctl.transport.dds.wire.wire_types import WireAcknowledgmentFrame, WireFrame
from tests.answer_frames import parse_answers

GUID = Guid(b"g" * 16)
END = int(SampleFlag.END_OF_QUEUE)
PARSERS: tuple[Callable[[bytes], object], ...] = (
    lambda data: frames.parse_frame(data, "P", "T"),
    frames.parse_arrivals,
    lambda data: frames.parse_answer_runs(data, GUID),
    lambda data: frames.parse_consumer_answers(data, "Q"),
)

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
        for read in parsed
        for each in read.singles()
    ] == given_samples
    assert {(each.participant, each.topic_name) for each in parsed} <= {("P", "T")}


WRITERS = [Guid(b"v" * 16), Guid(b"w" * 16)]
segments = st.lists(
    st.tuples(
        st.sampled_from(WRITERS),
        st.sampled_from((5, 6, 2**32 - 3)),
        st.lists(st.binary(min_size=3, max_size=3) | st.binary(max_size=9), min_size=1, max_size=20),
        st.sampled_from((0, 0, 1, 1 << 16)),
        st.sampled_from((INFINITE_NS, 7)),
        st.sampled_from(WRITERS),
    ),
    max_size=4,
)


@given(segments)
def test_samples_with_consecutive_numbers_are_read_as_runs_of_the_same_samples(found: list[tuple[Any, ...]]) -> None:
    packed, written = [], []
    for writer, first, payloads, flags, lifespan_ns, source in found:
        for number, payload in enumerate(payloads, first):
            identity = SampleIdentity(writer, number)
            packed.append(frames.pack_sample(identity, payload, source, flags=flags, lifespan_ns=lifespan_ns))
            members = (source, NIL_GUID, NIL_IDENTITY, NIL_GUID, flags & 0xFFFF, lifespan_ns, flags >> 16)
            written.append(Write("P", "T", identity, payload, *members))
    read = frames.parse_frame(frames.frame_of(packed), "P", "T")
    assert [single for each in read for single in each.singles()] == written


@pytest.mark.parametrize("attempt", [0, 1])
@pytest.mark.parametrize("sizes", [(8,) * 9, (8, 3, 8, 8, 1, 0, 8, 8, 8)])
def test_a_frame_of_one_writer_is_one_run(sizes: tuple[int, ...], attempt: int) -> None:
    packed = [
        frames.pack_sample(SampleIdentity(WRITERS[0], at), bytes(size), flags=attempt << 16)
        for at, size in enumerate(sizes, 5)
    ]
    (run,) = frames.parse_frame(frames.frame_of(packed), "P", "T")
    assert run == WriteRun("P", "T", SampleIdentity(WRITERS[0], 5), tuple(map(bytes, sizes)), attempt=attempt)


@pytest.mark.parametrize("differs", ["number", "writer", "flags", "lifespan_ns", "source_guid", "reader"])
def test_a_sample_that_differs_ends_a_run(differs: str) -> None:
    packed = []
    for number in range(20):
        other = number == 9
        identity = SampleIdentity(
            WRITERS[other and differs == "writer"], number + 40 if other and differs == "number" else number
        )
        packed.append(
            frames.pack_sample(
                identity,
                b"x",
                WRITERS[other and differs == "source_guid"],
                related_reader_guid=WRITERS[other and differs == "reader"],
                flags=int(other and differs == "flags"),
                lifespan_ns=7 if other and differs == "lifespan_ns" else INFINITE_NS,
            )
        )
    read = frames.parse_frame(frames.frame_of(packed), "P", "T")
    assert [len(each.singles()) for each in read] == [9, 1, 10]
    assert [single.identity.sequence_number for each in read for single in each.singles()] == [
        49 if number == 9 and differs == "number" else number for number in range(20)
    ]


@given(
    st.lists(st.binary(min_size=300, max_size=300) | st.binary(max_size=90_000), min_size=1, max_size=9)
    | st.integers(1, 1300).map(lambda count: [bytes(256)] * count),
    st.sampled_from((1, 3)),
    st.sampled_from((1, 3)),
    st.booleans(),
)
def test_a_run_of_deliveries_is_packed_like_its_samples(
    payloads: list[bytes], step: int, last_flags: int, has_neighbours: bool
) -> None:
    first = SampleIdentity(WRITERS[0], 2**32 - 2)
    run = RunDelivery(
        "Q", WRITERS[1], 7, first, payloads, WRITERS[0], NIL_GUID, NIL_IDENTITY, NIL_GUID, 1, last_flags, step, 0
    )
    other = Delivery("Q", WRITERS[1], 99, first, b"other")
    sent = [other, run, other] if has_neighbours else [run]
    singles = [single for each in sent for single in each.singles()]
    cut = frames.delivery_frames(sent)
    assert b"".join(frame[8:] for frame, _ in cut) == b"".join(frames.pack_deliveries(singles))
    assert [position for _, positions in cut for position in positions] == [each.position for each in singles]
    assert [frame for frame, _ in cut] == [frame for frame, _ in frames.frames_of(frames.pack_deliveries(singles))], (
        "each frame is as full as one of single samples"
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*WRITERS, NIL_GUID]),
            st.sampled_from((5, 6, 2**32 - 3)),
            st.sampled_from((1, 2, -1)),
            st.integers(1, 20),
            st.sampled_from((0, 1, 1, 1, 2)),
        ),
        max_size=5,
    )
)
def test_answers_at_a_constant_step_are_read_as_runs_of_the_same_answers(found: list[tuple[Any, ...]]) -> None:
    given_answers = [
        (SampleIdentity(writer, first + step * at), response)
        for writer, first, step, count, response in found
        for at in range(count)
        if first + step * at >= 0
    ]
    packed = frames.answers_of(b"c" * 16, "Orders@S", [frames.pack_answer(*each) for each in given_answers])
    sender, answers = frames.parse_consumer_answers(packed, "Q")
    singles = [single for each in answers for single in each.singles()]
    assert [(each.identity, int(each.response)) for each in singles] == given_answers
    assert {(each.queue, each.consumer_guid) for each in singles} <= {("Q", sender)} == {("Q", b"c" * 16)}


@pytest.mark.parametrize("step", [1, 3])
def test_acceptances_of_one_writer_are_one_run(step: int) -> None:
    accepted = [SampleIdentity(WRITERS[0], 5 + step * at) for at in range(9)]
    packed = frames.answers_of(b"c" * 16, "Orders@S", [frames.pack_answer(each, 1) for each in accepted])
    (run,) = frames.parse_consumer_answers(packed, "Q").answers
    assert run == RunAcknowledgment("Q", Guid(b"c" * 16), accepted[0], 9, step)


@given(st.integers(1, 40), st.booleans())
def test_answers_to_a_run_are_packed_like_its_answers(count: int, is_first: bool) -> None:
    accepted = RunAccepted("Q", SampleIdentity(WRITERS[0], 2**32 - 2), count)
    other = WriteAcknowledgment("Q", SampleIdentity(WRITERS[0], 3), AckResponse.REJECTED)
    answers = [accepted, other] if is_first else [other, accepted]
    singles = [single for each in answers for single in each.singles()]
    for pack in (frames.pack_answers, frames.pack_replica_answers):
        assert pack(answers) == pack(singles) == [frames.pack_answer(each.identity, each.response) for each in singles]


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
    assert frames.parse_frame(frame, "P", "Q") == frames.parse_frame(
        frames.frame_of([frames.pack_sample(*each[:7]) for each in given_samples]), "P", "Q"
    )


def deliveries_in(frame: bytes) -> list[Delivery]:
    """The samples of a frame without the end of a queue, as a program is given them."""
    return [
        frames.delivery_of(octets, "Q", GUID)
        for arrivals in frames.parse_arrivals(frame)
        if isinstance(arrivals, Arrivals)
        for octets in arrivals.samples.values()
    ]


@given(st.lists(samples, max_size=5, unique_by=lambda each: each[0]))
def test_a_consumer_is_given_what_was_packed(given_samples: list[tuple[Any, ...]]) -> None:
    arrived = frames.parse_arrivals(frames.frame_of([frames.pack_sample(*each) for each in given_samples]))
    ends = [
        (identity.sequence_number, flags >> 16)
        for identity, *_, flags, _ in given_samples
        if identity.writer_guid == NIL_GUID and flags & SampleFlag.END_OF_QUEUE
    ]
    assert [(each.question, each.epoch) for each in arrived if isinstance(each, QueueEnd)] == ends
    found = [
        (
            frames.delivery_of(octets, "Q", GUID),
            frames.flags_of_octets(octets) >> 16 == each.epoch and frames.key_of(frames.identity_of(key)) == key,
        )
        for each in arrived
        if isinstance(each, Arrivals)
        for key, octets in each.samples.items()
    ]
    assert all(is_consistent for _, is_consistent in found)
    assert [
        (
            each.identity,
            each.payload,
            each.source_guid,
            each.related_source_guid,
            each.related_identity,
            each.related_reader_guid,
            each.flags,
        )
        for each, _ in found
    ] == [
        each[:7] for each in given_samples if each[0].writer_guid != NIL_GUID or not each[6] & SampleFlag.END_OF_QUEUE
    ]
    assert {(each.queue, each.consumer_guid) for each, _ in found} <= {("Q", GUID)}


@pytest.mark.parametrize("flags", [0, 5 << 16, 1])
def test_the_samples_of_one_epoch_arrive_together(flags: int) -> None:
    """A frame is not divided by other marks of a queue, such as that of its last sample."""
    last = flags | SampleFlag.LAST_SHARED_READER_QUEUE
    packed = [frames.pack_sample(SampleIdentity(GUID, at), b"x", flags=last if at == 3 else flags) for at in range(4)]
    (arrived,) = frames.parse_arrivals(frames.frame_of(packed))
    assert isinstance(arrived, Arrivals)
    assert (len(arrived.samples), arrived.epoch) == (4, flags >> 16)


@given(
    st.integers(1, 2**63 - 9) | st.integers(2**32 - 6, 2**32),
    st.lists(st.binary(max_size=9), min_size=1, max_size=8) | st.lists(st.just(b"12345"), min_size=1, max_size=8),
    st.builds(SampleTraits, lifespans, guids, st.just(NIL_IDENTITY) | identities, st.integers(0, 2**16 - 1)),
    guids,
)
def test_a_run_is_packed_like_its_samples(
    first: int, payloads: list[bytes], traits: SampleTraits, source: Guid
) -> None:
    run = OutgoingRun("T", GUID, source, traits, first, payloads)
    assert frames.pack_run(run) == [
        frames.pack_sample(
            each.identity, each.payload, each.source_guid, each.related_source_guid, each.related_identity,
            each.related_reader_guid, each.flags, each.lifespan_ns,
        )
        for each in run.writes()
    ]  # fmt: skip
    assert [each.identity.sequence_number for each in run.writes()] == list(range(first, first + len(payloads)))


numbers = st.integers(0, 2**63 - 1) | st.integers(2**32 - 3, 2**32 + 3) | st.integers(1, 9)
answered = st.tuples(st.sampled_from([GUID, Guid(b"o" * 16)]), numbers, st.sampled_from([0, 1, 1, 0x10001]))
consecutive = st.builds(
    lambda first, count: [(GUID, number, 1) for number in range(first, first + count)], numbers, st.integers(1, 9)
)


@given(
    st.lists(answered, max_size=9)
    | consecutive
    | st.lists(consecutive, max_size=3).map(lambda each: list(chain(*each)))
)
def test_a_producer_is_given_its_answers_in_runs(answers: list[tuple[Guid, int, int]]) -> None:
    identities = [SampleIdentity(guid, min(number, 2**63 - 1)) for guid, number, _ in answers]
    packed = [frames.pack_answer(each, response) for each, (_, _, response) in zip(identities, answers, strict=True)]
    data = frames.answers_of(NIL_GUID, "T@S", packed)
    sender, name, count, runs = frames.parse_answer_runs(data, GUID)
    whole = parse_answers(data)
    assert (sender, name, count) == (whole.sender, whole.queue_name, len(whole.identities))
    assert [(number, response) for numbers, response in runs for number in numbers] == [
        (identity.sequence_number, response)
        for identity, response in zip(whole.identities, whole.responses, strict=True)
        if identity.writer_guid == GUID
    ]
    assert all(
        runs[at][0].stop != runs[at + 1][0].start or runs[at][1] != runs[at + 1][1] for at in range(len(runs) - 1)
    )


@given(st.lists(st.tuples(st.sampled_from(AckResponse), st.lists(identities, min_size=1, max_size=4)), max_size=4))
def test_answers_by_keys_are_packed_like_single_ones(answers: list[tuple[AckResponse, list[SampleIdentity]]]) -> None:
    by_keys = [SampleAnswers(response, list(map(frames.key_of, each))) for response, each in answers]
    singly = [frames.pack_answer(each, response) for response, group in answers for each in group]
    whole = [frames.answers_of(GUID, "T@S", singly)] if singly else []
    assert frames.answer_frames(GUID, "T@S", by_keys) == whole


def test_more_answers_than_a_frame_holds_are_several_frames() -> None:
    keys = [frames.key_of(SampleIdentity(GUID, number)) for number in range(frames.ANSWERS_MAX + 1)]
    packed = frames.answer_frames(GUID, "T@S", [SampleAnswers(AckResponse.ACCEPTED, keys)])
    first, second = map(parse_answers, packed)
    assert (len(first.identities), len(second.identities)) == (frames.ANSWERS_MAX, 1)
    assert [each.sequence_number for each in (first.identities + second.identities)] == list(range(len(keys)))


@given(st.lists(st.tuples(samples, st.integers(1, 2**31)), min_size=1, max_size=5, unique_by=lambda each: each[0][0]))
def test_a_consumer_is_sent_the_number_of_the_attempt(given_samples: list[tuple[tuple[Any, ...], int]]) -> None:
    deliveries = [
        Delivery("Q", reader, 0, identity, payload, source, related_source, related, NIL_GUID, flags & ~END, attempt)
        for (identity, payload, source, related_source, related, reader, flags, _), attempt in given_samples
    ]
    frame = frames.frame_of(frames.pack_deliveries(deliveries))
    assert [each.attempt for each in deliveries_in(frame)] == [min(attempt, 2**31 - 2) for _, attempt in given_samples]


def test_a_lifespan_is_no_attempt() -> None:
    packed = frames.pack_sample(SampleIdentity(Guid(b"w" * 16), 1), b"x", lifespan_ns=3 * 10**9 + 7)
    (delivery,) = deliveries_in(frames.frame_of([packed]))
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
    assert parse_answers(packed) == (sender, queue, identities, responses)
    assert bytes(WireAcknowledgmentFrame.deserialize(packed).serialize(use_version_2=False)) == packed


@given(st.binary(max_size=300))
def test_no_octets_do_more_than_be_refused(octets: bytes) -> None:
    for data in (octets, frames.ENCAPSULATION + octets):
        for parse in PARSERS:
            try:
                parse(data)
            except frames.MalformedFrame as refusal:
                assert str(refusal)


@given(st.lists(samples, min_size=1, max_size=3), st.data())
def test_a_frame_cut_anywhere_is_refused(given_samples: list[tuple[object, ...]], data: st.DataObject) -> None:
    frame = frames.frame_of([frames.pack_sample(*each) for each in given_samples])  # type: ignore[arg-type]
    padding = 3
    cut = data.draw(st.integers(0, len(frame) - 1 - padding))
    for parse in PARSERS[:2]:
        with pytest.raises(frames.MalformedFrame):
            parse(frame[:cut])


@pytest.mark.parametrize("at", ["identity", "related identity"])
def test_a_negative_number_is_refused_before_anything_stores_it(at: str) -> None:
    number = SampleIdentity(Guid(b"w" * 16), 7)
    negative = SampleIdentity(Guid(b"w" * 16), -1)
    identity, related = (negative, number) if at == "identity" else (number, negative)
    frame = frames.frame_of([frames.pack_sample(identity, b"x", related_identity=related)])
    with pytest.raises(frames.MalformedFrame, match="sequence number is -1"):
        frames.parse_frame(frame, "P", "T")


def test_a_claim_of_four_billion_samples_costs_nothing() -> None:
    for parse in PARSERS[:2]:
        with pytest.raises(frames.MalformedFrame, match="claims 4294967295 samples"):
            parse(frames.ENCAPSULATION + b"\xff\xff\xff\xff" + bytes(200))
    for parse in PARSERS[2:]:
        with pytest.raises(frames.MalformedFrame, match="acknowledgments"):
            parse(frames.ENCAPSULATION + bytes(16) + b"\xff\xff\xff\xff" + bytes(200))


@given(st.lists(st.binary(min_size=4, max_size=20_000), max_size=40))
def test_frames_keep_the_order_and_stay_below_one_message(packed: list[bytes]) -> None:
    cut = frames.frames_of(packed)
    assert sum(count for _, count in cut) == len(packed)
    assert b"".join(frame[8:] for frame, _ in cut) == b"".join(packed)
    assert all(len(frame) <= frames.FRAME_BYTES_TARGET + 8 or count == 1 for frame, count in cut)


@pytest.mark.parametrize("response", AckResponse)
def test_a_service_reads_every_response_that_a_consumer_gives(response: AckResponse) -> None:
    packed = frames.answers_of(b"c" * 16, "Orders@S", [frames.pack_answer(NIL_IDENTITY, response)])
    (answer,) = frames.parse_consumer_answers(packed, "Q").answers
    assert answer == Acknowledgment("Q", Guid(b"c" * 16), NIL_IDENTITY, response)


def test_a_response_that_no_consumer_gives_is_malformed() -> None:
    packed = frames.answers_of(b"c" * 16, "Orders@S", [frames.pack_answer(NIL_IDENTITY, len(AckResponse))])
    with pytest.raises(frames.MalformedFrame, match="a response is 3"):
        frames.parse_consumer_answers(packed, "Q")
