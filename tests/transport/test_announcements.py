"""What is read of readers and writers in a domain: what they said of themselves, and that they are gone."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription
from cyclonedds.core import InstanceState
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic

from qsctl.instant import INFINITE_NS
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.announcements import (
    SHARED_SUBSCRIBER_PROPERTY,
    EndpointSample,
    announcement_of,
    take_endpoints,
)
from qsctl.transport.dds.wire.raw import close_entity
from tests.dds.domains import claim_domain, release_domain
from tests.patience import PATIENCE_S


@dataclass
class Number(IdlStruct, typename="Number"):
    """Anything."""

    number: int


@pytest.fixture
def participants() -> Iterator[tuple[Participant, Participant]]:
    """One that is looked at, and one that looks."""
    domain = claim_domain()
    peer, own = Participant(domain), Participant(domain)
    yield peer, own
    peer.close()
    own.close()
    release_domain(domain)


def taken_until(
    reader: BuiltinDataReader, is_enough: Callable[[list[EndpointSample]], bool], count: int = 7
) -> list[EndpointSample]:
    found: list[EndpointSample] = []
    deadline = time.monotonic() + PATIENCE_S
    while not is_enough(found):
        assert time.monotonic() < deadline, found
        found += take_endpoints(reader, count)
        time.sleep(0.001)
    return found


def is_alive(sample: EndpointSample) -> bool:
    return bool(sample.info.valid_data) and sample.info.instance_state == InstanceState.Alive


def test_all_members_of_an_announced_endpoint_are_read(participants: tuple[Participant, Participant]) -> None:
    peer, own = participants
    entity: Any = peer.entity
    topic = Topic(entity, "Said", Number)
    partition = Qos(Policy.Partition(["one", "t\u00e4o"]))
    writer = DataWriter(
        Publisher(entity, qos=partition),
        topic,
        qos=Qos(
            Policy.Userdata(b"a\0b"),
            Policy.Lifespan(7_000_000_000),
            Policy.DataRepresentation(use_cdrv0_representation=True),
        ),
    )
    reader = DataReader(
        Subscriber(entity, qos=partition), topic, qos=Qos(Policy.Property(SHARED_SUBSCRIBER_PROPERTY, "S"))
    )
    own_entity: Any = own.entity
    writers = BuiltinDataReader(own_entity, BuiltinTopicDcpsPublication)
    readers = BuiltinDataReader(own_entity, BuiltinTopicDcpsSubscription)
    (said,) = [
        each
        for each in taken_until(writers, lambda all_: any(x.topic_name == b"Said" for x in all_))
        if each.topic_name == b"Said"
    ]
    announced = announcement_of(said)
    assert announced.key == writer.guid.bytes
    assert (announced.topic_name, announced.type_name) == ("Said", "Number")
    assert announced.partitions == (b"one", "t\u00e4o".encode())
    assert (announced.user_data, announced.shared_subscriber) == (b"a\0b", None)
    assert announced.lifespan_ns == 7_000_000_000
    assert announced.representations == (0,)
    assert is_alive(said)
    (read,) = [
        each
        for each in taken_until(readers, lambda all_: any(x.topic_name == b"Said" for x in all_))
        if each.topic_name == b"Said"
    ]
    announced = announcement_of(read)
    assert announced.key == reader.guid.bytes
    assert (announced.user_data, announced.shared_subscriber, announced.lifespan_ns) == (b"", b"S", INFINITE_NS)


def test_more_endpoints_than_are_taken_at_once_come_in_turns_and_go(
    participants: tuple[Participant, Participant],
) -> None:
    peer, own = participants
    entity: Any = peer.entity
    writers = BuiltinDataReader(own.entity, BuiltinTopicDcpsPublication)  # type: ignore[arg-type]
    made = [DataWriter(entity, Topic(entity, f"Many{number}", Number)) for number in range(40)]
    keys = {each.guid.bytes for each in made}
    found = taken_until(writers, lambda all_: keys <= {each.key for each in all_ if is_alive(each)})
    handles = {each.key: each.info.instance_handle for each in found if each.key in keys}
    for each in made:
        close_entity(each)
    gone = taken_until(writers, lambda all_: keys <= {each.key for each in all_ if not is_alive(each)})
    assert {each.key: each.info.instance_handle for each in gone if each.key in keys} == handles
    assert take_endpoints(writers, 7) == []
    close_entity(writers)


def test_an_endpoint_that_came_and_went_between_two_reads_is_identified(
    participants: tuple[Participant, Participant],
) -> None:
    peer, own = participants
    entity: Any = peer.entity
    writers = BuiltinDataReader(own.entity, BuiltinTopicDcpsPublication)  # type: ignore[arg-type]
    passing = DataWriter(entity, Topic(entity, "Passing", Number), qos=Qos(Policy.Userdata(b"who")))
    key = passing.guid.bytes
    other = BuiltinDataReader(own.entity, BuiltinTopicDcpsPublication)  # type: ignore[arg-type]
    taken_until(other, lambda all_: any(each.key == key for each in all_))
    close_entity(passing)
    taken_until(other, lambda all_: any(each.key == key and not is_alive(each) for each in all_))
    found = [each for each in take_endpoints(writers, 100) if each.key == key]
    assert not any(map(is_alive, found))
    assert [each.policies.user_data for each in found if each.info.valid_data] == [b"who"]


def test_a_name_that_is_no_text_is_refused() -> None:
    sample = EndpointSample(b"k" * 16, b"\xff", b"T", announcements_nothing(), None)  # type: ignore[arg-type]
    with pytest.raises(Malformed, match="not UTF-8"):
        announcement_of(sample)


def announcements_nothing() -> Any:
    from qsctl.transport.dds.peers.announcements import Policies

    return Policies((), b"", None)
