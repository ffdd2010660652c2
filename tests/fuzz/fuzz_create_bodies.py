"""CREATE bodies as a peer sends them: read, judged by the rules, and their endpoints made in a domain on loopback.

Rules: a body gives settings or a `QsctlError` of bounded length; what the rules accept has endpoints that can be made;
what was refused leaves none. QoS that was made once is not made again: most inputs differ in what no endpoint sees.
"""

from __future__ import annotations

import functools

from qsctl.config.settings import ServiceConfiguration
from qsctl.config.snippet import read_queue_snippet, read_subscriber_snippet
from qsctl.core.admin.request import xml_of_body
from qsctl.core.queue.settings import SessionSettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import QsctlError
from qsctl.transport.dds.participant import DomainSettings, Participant
from qsctl.transport.dds.serving._endpoint_trial import try_endpoints

DOMAIN = 219
REPLY_CHARACTERS_MAX = 1024 * 1024
KNOWN_MAX = 20_000

DICTIONARY = (
    b'str://"',
    b'\\"',
    b"<datareader_qos>",
    b"</datareader_qos>",
    b"<datawriter_qos>",
    b"</datawriter_qos>",
    b"<deadline><period><sec>1</sec></period></deadline>",
    b"<time_based_filter><minimum_separation><sec>2</sec></minimum_separation></time_based_filter>",
    b"<lifespan><duration><nanosec>1</nanosec></duration></lifespan>",
    b"<latency_budget/>",
    b"<liveliness><kind>MANUAL_BY_TOPIC_LIVELINESS_QOS</kind><lease_duration><sec>0</sec></lease_duration></liveliness>",
    b"<resource_limits><max_samples>5</max_samples></resource_limits>",
    b"<history><kind>KEEP_ALL_HISTORY_QOS</kind><depth>9</depth></history>",
    b"<transport_priority><value>-1</value></transport_priority>",
    b"<ownership><kind>EXCLUSIVE_OWNERSHIP_QOS</kind></ownership>",
    b"<durability><kind>DDS_PERSISTENT_DURABILITY_QOS</kind></durability>",
    b"<topic_name>DCPSTopic</topic_name>",
    b"<reply_type>DDS::String</reply_type>",
    b"<session_settings><session name='s'/></session_settings>",
    b"DURATION_INFINITE_SEC",
    b"LENGTH_UNLIMITED",
    b"2147483647",
    b"0xffffffffffffffff",
    b"$(HOME)",
    b"\xc3\xa9",
)

_SUBSCRIBER = SharedSubscriberSettings("S", (SessionSettings("s"),))
_PARTICIPANT = DomainParticipantSettings("P", DOMAIN, (_SUBSCRIBER,))
_CONFIGURATION = ServiceConfiguration("fuzz", ServiceSettings("fuzz", (_PARTICIPANT,)))
_made: set[tuple[object, ...]] = set()


@functools.cache
def _participant() -> Participant:
    return Participant(DOMAIN, DomainSettings(), name="fuzz")


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    for subscriber, queues in _read(text):
        for queue in queues:
            _has_endpoints(subscriber, queue)


def _read(text: str) -> list[tuple[str, tuple[SharedReaderQueueSettings, ...]]]:
    found: list[tuple[str, tuple[SharedReaderQueueSettings, ...]]] = []
    try:
        xml = xml_of_body(text)
        if "<shared_subscriber" in xml:
            subscriber = read_subscriber_snippet(xml, _CONFIGURATION, source="body", participant=_PARTICIPANT)
            found.append((subscriber.name, subscriber.queues))
        else:
            queue = read_queue_snippet(
                xml, _CONFIGURATION, source="body", subscriber=_SUBSCRIBER, participant=_PARTICIPANT
            )
            found.append(("S", (queue,)))
    except QsctlError as error:
        assert error.message
        assert len(error.message) < REPLY_CHARACTERS_MAX
        assert "Value error" not in error.message
    return found


def _has_endpoints(subscriber: str, queue: SharedReaderQueueSettings) -> None:
    name = f"P/{subscriber}/{queue.name}"
    assert len(name.encode()) <= 255, name
    assert len(f"{queue.topic_name}@{subscriber}".encode()) <= 255
    seen = (
        subscriber,
        queue.topic_name,
        queue.is_dead_letter,
        queue.distribution.allow_consumer_feedback,
        queue.qos.get("datareader_qos", ""),
        queue.qos.get("datawriter_qos", ""),
    )
    if seen in _made:
        return
    try_endpoints(_participant(), subscriber, queue)  # raises `Refused` where the rules accepted too much
    if len(_made) < KNOWN_MAX:
        _made.add(seen)
