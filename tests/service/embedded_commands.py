"""Commands to an embedded service, in few words, for the tests of it."""

from __future__ import annotations

from qsctl.core.admin.command import CreateQueue, GetMessages, GetStatus
from qsctl.core.admin.reply import MessageData, ReturnCode
from qsctl.core.messages import AckResponse, Write
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    SampleBufferSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import ResourceKind, parse_resource
from qsctl.service.directory.embedded import EmbeddedService

SUBSCRIBER = parse_resource("/domain_participant/DomainParticipant/shared_subscriber/SharedSubscriber")
WRITER = Guid(bytes(15) + b"\x07")
FULL_NAME = "DomainParticipant/SharedSubscriber/"

VOLATILE = PersistenceSettings()
IN_MEMORY = PersistenceSettings(PersistenceKind.PERSISTENT)
ON_DISK = PersistenceSettings(PersistenceKind.PERSISTENT, in_memory_state=False)
PERSISTENCE = {"volatile": VOLATILE, "in-memory": IN_MEMORY, "on-disk": ON_DISK}


def queue(name: str = "Orders", persistence: PersistenceSettings = VOLATILE) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(
        name,
        name,
        persistence=persistence,
        redelivery=RedeliverySettings(max_delivery_retries=10),
        sample_buffer=SampleBufferSettings(min_size_bytes=64),
    )


def create(service: EmbeddedService, settings: SharedReaderQueueSettings) -> ReturnCode:
    return service.request(CreateQueue(SUBSCRIBER, settings))[0].reply.retcode


def write(service: EmbeddedService, *payloads: bytes, topic: str = "Orders", start: int = 0) -> list[AckResponse]:
    samples = [
        Write("DomainParticipant", topic, SampleIdentity(WRITER, start + at), payload)
        for at, payload in enumerate(payloads)
    ]
    return [answer.response for answer in service.write(samples)]


def messages(service: EmbeddedService, name: str = "Orders") -> list[MessageData]:
    resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, name).at(ResourceKind.MESSAGE)
    replies = service.request(GetMessages(resource))
    return [each.reply.body for each in replies if isinstance(each.reply.body, MessageData)]


def status(service: EmbeddedService, name: str = "Orders") -> SharedReaderQueueStatus:
    resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, name).at(ResourceKind.STATUS)
    body = service.request(GetStatus(resource))[0].reply.body
    assert isinstance(body, SharedReaderQueueStatus)
    return body
