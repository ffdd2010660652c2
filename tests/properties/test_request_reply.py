"""Replies by address [QS 2.11]: whatever comes and goes, nobody gets what is meant for another."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerJoined, ConsumerLeft, Delivery, Inbound, Write
from qsctl.core.queue.settings import RedeliverySettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import NIL_GUID, Guid, SampleIdentity, counted_incarnations
from qsctl.instant import SECOND_NS

REPLIES = "P/S/workReply"
WRITER = Guid(b"w" * 16)
ADDRESSES = [NIL_GUID, Guid(b"a" * 16), Guid(b"b" * 16)]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(ADDRESSES), st.booleans()),
        st.tuples(st.just("join"), st.integers(1, 5), st.sampled_from(ADDRESSES)),
        st.tuples(st.just("leave"), st.integers(1, 5), st.booleans()),
        st.tuples(st.just("settle"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("wait"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(steps)
def test_a_reply_reaches_only_its_requester(todo: list[tuple[str, object, object]]) -> None:
    work = SharedReaderQueueSettings("work", "Work", reply_type="R", redelivery=RedeliverySettings(20, 3 * SECOND_NS))
    subscriber = SharedSubscriberSettings("S", (), (work,))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    engine = ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    readers: dict[Guid, Guid] = {}
    meant: dict[int, Guid] = {}
    holders: dict[int, Guid] = {}
    first_sent: defaultdict[Guid, list[int]] = defaultdict(list)
    now = 0
    for step, one, other in todo:
        message: Inbound | None = None
        now += SECOND_NS
        if step == "write":
            number = len(meant) + 1
            meant[number] = one  # type: ignore[assignment]
            by_reader = {"related_reader_guid" if other else "related_source_guid": one}
            message = Write("P", "WorkReply", SampleIdentity(WRITER, number), b"", **by_reader)  # type: ignore[arg-type]
        elif step == "join":
            guid = Guid(bytes([one]) * 16)  # type: ignore[list-item]
            message = ConsumerJoined(REPLIES, guid, other)  # type: ignore[arg-type]
            readers[guid] = other  # type: ignore[assignment]
        elif step == "leave":
            guid = Guid(bytes([one]) * 16)  # type: ignore[list-item]
            message = ConsumerLeft(REPLIES, guid, bool(other))
            readers.pop(guid, None)
        elif step == "settle" and holders:
            number, guid = sorted(holders.items())[one % len(holders)]  # type: ignore[operator]
            message = Acknowledgment(REPLIES, guid, SampleIdentity(WRITER, number), AckResponse(int(bool(other))))
        if message is not None:
            engine.receive(now, message)
        engine.advance(now)
        for sent in engine.take_ready().messages:
            if isinstance(sent, Delivery):
                number = sent.identity.sequence_number
                assert readers[sent.consumer_guid] == meant[number]
                holders[number] = sent.consumer_guid
                if number not in first_sent[meant[number]]:
                    first_sent[meant[number]].append(number)
        for held in engine.hosted.by_name[REPLIES].held:
            if held.holder == NIL_GUID:
                holders.pop(held.identity.sequence_number, None)
        away = {
            meant[held.identity.sequence_number] for held in engine.hosted.by_name[REPLIES].held if not any(held.holder)
        }
        assert not away & set(readers.values())
    assert all(numbers == sorted(numbers) for numbers in first_sent.values())
    lanes = engine.hosted.by_name[REPLIES].deliveries.groups._addressed
    assert all(lane.waiting_count or len(lane.ring) for lane in lanes.values())
