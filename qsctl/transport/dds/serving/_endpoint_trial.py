"""A trial of a queue's endpoints: they are created and deleted before a CREATE is stored and answered.

They are created in a partition of their own, so that no peer matches them, and deleted at once. The rules of `config`
report the errors that they can detect; the trial finds those that only DDS detects.

Whether a topic can be created depends on its name and on the participant; whether an endpoint can, on its policies and
its type. So a topic that the participant already has needs no trial, nor does an element of policies that has passed in
this process: a service that creates thousands of similar queues tries their endpoints once.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any, Final

from cyclonedds.core import DDSException, Qos
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.errors import QsctlError, Refused
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import map_qos, partition_qos, reader_qos, writer_qos
from qsctl.transport.dds.wire.raw import close_entity
from qsctl.transport.dds.wire.wire_types import (
    WireAcknowledgmentFrame,
    WireConsumerAvailability,
    WireFrame,
    availability_topic,
    consumer_acknowledgment_topic,
    consumer_topic,
    producer_acknowledgment_topic,
)

CANNOT_BE_MADE: Final = (DDSException, QsctlError, ValueError, TypeError)
"""Exceptions of creating an endpoint: from DDS, from qsctl for a topic or a value, from the binding for its objects."""

PASSED_MAX: Final = 1_000
"""Number of remembered policy elements that passed, for writers and for readers; each is a text from a command."""

_PASSED_WRITERS: Final[dict[str, None]] = {}
_PASSED_READERS: Final[dict[str, None]] = {}


def try_endpoints(participant: Participant, subscriber: str, settings: SharedReaderQueueSettings) -> None:
    """Create the endpoints of a queue where no peer matches them, and delete them.

    Raises:
        Refused: an endpoint cannot be created; the message names it and the reason.
    """
    topic = settings.topic_name
    other_topics: list[tuple[str, type[Any]]] = [
        (consumer_acknowledgment_topic(topic, subscriber), WireAcknowledgmentFrame)
    ]
    if settings.distribution.allow_consumer_feedback:
        other_topics.append((availability_topic(topic, subscriber), WireConsumerAvailability))
    if not settings.is_dead_letter:
        other_topics.append((producer_acknowledgment_topic(topic), WireAcknowledgmentFrame))
    writer_element = settings.qos.get("datawriter_qos", "")
    reader_element = settings.qos.get("datareader_qos", "")
    part = "its topics"
    with ExitStack() as made:
        try:
            for name, data_type in other_topics:
                _topic(participant, name, data_type, made)
            part = "<datawriter_qos>"
            outgoing = _topic(participant, consumer_topic(topic, subscriber), WireFrame, made)
            if writer_element not in _PASSED_WRITERS:
                _try_writer(participant, outgoing, writer_element)
                _remember(_PASSED_WRITERS, writer_element)
            if not settings.is_dead_letter:
                part = "<datareader_qos>"
                incoming = _topic(participant, topic, WireFrame, made)
                if reader_element not in _PASSED_READERS:
                    _try_reader(participant, incoming, reader_element)
                    _remember(_PASSED_READERS, reader_element)
        except CANNOT_BE_MADE as error:
            raise Refused(
                f"the queue {settings.name} cannot be offered over DDS: {part}: {reason_of(error)}",
                remedy="Change them, or leave them out.",
            ) from error


def _topic(participant: Participant, name: str, data_type: type[Any], made: ExitStack) -> Topic[Any]:
    """Return the participant's topic of this name, or a new one that `made` closes.

    Raises:
        Refused: as from `Participant.topic`.
    """
    if participant.has_topic(name):
        return participant.topic(name, data_type)
    topic = participant.own_topic(name, data_type)
    made.callback(close_entity, topic)
    return topic


def _try_writer(participant: Participant, topic: Topic[Any], element: str) -> None:
    """Create a writer with the policies of a `<datawriter_qos>`, and delete it."""
    assert participant.entity is not None
    with ExitStack() as made:
        publisher = Publisher(participant.entity, qos=_partition())
        made.callback(close_entity, publisher)
        extra = map_qos(element).policies
        made.callback(close_entity, DataWriter(publisher, topic, qos=writer_qos(extra=extra)))


def _try_reader(participant: Participant, topic: Topic[Any], element: str) -> None:
    """Create a reader with the policies of a `<datareader_qos>`, and delete it."""
    assert participant.entity is not None
    with ExitStack() as made:
        subscriber = Subscriber(participant.entity, qos=_partition())
        made.callback(close_entity, subscriber)
        extra = map_qos(element).policies
        made.callback(close_entity, DataReader(subscriber, topic, qos=reader_qos(extra=extra)))


def _partition() -> Qos:
    return partition_qos(f"trial {os.urandom(8).hex()}")


def _remember(passed: dict[str, None], element: str) -> None:
    """Remember a policy element that passed; above the bound the oldest is dropped."""
    passed[element] = None
    if len(passed) > PASSED_MAX:
        passed.pop(next(iter(passed)), None)


def reason_of(error: BaseException) -> str:
    """Return the text of an error in one line."""
    text = error.message if isinstance(error, QsctlError) else getattr(error, "msg", "") or str(error)
    return " ".join(str(text).split())
