"""A trial of a queue's endpoints: they are created and deleted before a CREATE is stored and answered.

They are made in a partition of their own, so that no peer matches them, and deleted at once. The rules of `config`
report the faults that they can find; the trial finds those that only DDS detects.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any, Final

from cyclonedds.core import DDSException
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber

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


def try_endpoints(participant: Participant, subscriber: str, settings: SharedReaderQueueSettings) -> None:
    """Make the endpoints of a queue where no peer sees them, and delete them.

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
    part = "its topics"
    assert participant.entity is not None
    with ExitStack() as made:
        try:
            partition = partition_qos(f"trial {os.urandom(8).hex()}")
            for name, data_type in other_topics:
                made.callback(close_entity, participant.own_topic(name, data_type))
            part = "<datawriter_qos>"
            outgoing = participant.own_topic(consumer_topic(topic, subscriber), WireFrame)
            made.callback(close_entity, outgoing)
            publisher = Publisher(participant.entity, qos=partition)
            made.callback(close_entity, publisher)
            extra = map_qos(settings.qos.get("datawriter_qos", "")).policies
            made.callback(close_entity, DataWriter(publisher, outgoing, qos=writer_qos(extra=extra)))
            if not settings.is_dead_letter:
                part = "<datareader_qos>"
                incoming = participant.own_topic(topic, WireFrame)
                made.callback(close_entity, incoming)
                reading = Subscriber(participant.entity, qos=partition)
                made.callback(close_entity, reading)
                extra = map_qos(settings.qos.get("datareader_qos", "")).policies
                made.callback(close_entity, DataReader(reading, incoming, qos=reader_qos(extra=extra)))
        except CANNOT_BE_MADE as error:
            raise Refused(
                f"the queue {settings.name} cannot be offered over DDS: {part}: {reason_of(error)}",
                remedy="Change them, or leave them out.",
            ) from error


def reason_of(error: BaseException) -> str:
    """Return what was wrong, in one line."""
    text = error.message if isinstance(error, QsctlError) else getattr(error, "msg", "") or str(error)
    return " ".join(str(text).split())
