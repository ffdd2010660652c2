"""Which queues are given the samples found in files: those whose files were just opened [QS 2.14.2]."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue
from qsctl.core.messages import Acknowledgment, CommandRequest, ConsumerJoined, Delivery, Inbound, Outbound
from qsctl.core.queue.settings import (
    PersistenceSettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.identity import SampleIdentity
from qsctl.resource import ResourceKind
from qsctl.service.run.loop import ServiceLoop
from tests.service.pipelines import (
    IN_MEMORY,
    ON_DISK,
    READER,
    SUBSCRIBER,
    WRITER,
    messages_of,
    numbers_of,
    payloads_of,
    pipelined,
    queue,
    service,
    writes,
)

REPLY = "P/S/ZReply"


def create(settings: SharedReaderQueueSettings) -> CommandRequest:
    return CommandRequest(SampleIdentity(READER, 1), "*", CreateQueue(SUBSCRIBER, settings))


def delete(name: str) -> CommandRequest:
    resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, name)
    return CommandRequest(SampleIdentity(READER, 2), "*", DeleteQueue(resource))


def reply_queue(persistence: PersistenceSettings) -> SharedReaderQueueSettings:
    return replace(queue("ZReply", persistence), limits=ResourceLimitSettings(max_count=3))


class Driver:
    """A service in whole turns, or with a pipeline: both give a created queue what its files hold."""

    def __init__(self, loop: ServiceLoop, runs_ahead: bool) -> None:
        self.loop = loop
        self.pipeline = pipelined(loop) if runs_ahead else None

    def turn(self, *inbox: Inbound) -> list[Outbound]:
        if self.pipeline is None:
            return self.loop.turn(inbox).messages
        self.pipeline.begin(inbox)
        return messages_of(self.pipeline.drain())

    def held_count(self, name: str) -> int:
        return len(self.loop.engine.hosted.by_name[name].held)

    def close(self) -> None:
        if self.pipeline is not None:
            self.pipeline.close()
        self.loop.stores.close()


@pytest.mark.parametrize("runs_ahead", [False, True], ids=["turns", "pipeline"])
@pytest.mark.parametrize("persistence", [IN_MEMORY, ON_DISK], ids=["segments", "database"])
@pytest.mark.parametrize("held", [False, True], ids=["waiting", "with_a_consumer"])
@pytest.mark.parametrize("created", ["Z", "sibling", "declares_the_reply"])
def test_a_live_reply_queue_keeps_what_it_holds_when_another_is_created(
    tmp_path: Path, runs_ahead: bool, persistence: PersistenceSettings, held: bool, created: str
) -> None:
    """Wherever the created queue's name or reply points: the live queue's files are no earlier run's."""
    driver = Driver(service(tmp_path, reply_queue(persistence)), runs_ahead)
    driver.turn(*writes(1, 2, topic="Zreply"))
    if held:
        driver.turn(ConsumerJoined(REPLY, READER, unacked_threshold=0))
    declared = SharedReaderQueueSettings("Z", "Z", reply_type="Text", reply_topic="Zreply")
    names = {"Z": queue("Z"), "sibling": queue("ZReplyReply"), "declares_the_reply": declared}
    driver.turn(create(names[created]))
    assert driver.held_count(REPLY) == 2
    assert numbers_of(driver.turn(*writes(3, topic="Zreply"))) == [3]
    assert driver.held_count(REPLY) == 3, "the limits counted each sample once"
    if held:
        driver.turn(Acknowledgment(REPLY, READER, SampleIdentity(WRITER, 1)))
        assert driver.held_count(REPLY) == 2
    driver.close()
    again = service(tmp_path, reply_queue(persistence))
    assert len(again.engine.hosted.by_name[REPLY].held) == (2 if held else 3)
    again.stores.close()


def test_a_created_subscriber_finds_the_samples_of_its_queues_and_of_no_others(tmp_path: Path) -> None:
    loop = service(tmp_path, queue())
    subscriber = SharedSubscriberSettings("T", queues=(queue("parts"),))
    request = CommandRequest(SampleIdentity(READER, 1), "*", CreateSubscriber(SUBSCRIBER.parent, subscriber))
    loop.turn([request, *writes(1, 2, topic="Parts"), *writes(3)])
    loop.stores.close()
    loop = service(tmp_path, queue())
    loop.turn(writes(4))
    loop.turn([request])
    assert len(loop.engine.hosted.by_name["P/T/parts"].held) == 2
    assert len(loop.engine.hosted.by_name["P/S/orders"].held) == 2
    loop.stores.close()


@pytest.mark.parametrize("runs_ahead", [False, True], ids=["turns", "pipeline"])
@pytest.mark.parametrize("persistence", [IN_MEMORY, ON_DISK], ids=["segments", "database"])
def test_a_queue_deleted_and_created_in_one_inbox_begins_empty(
    tmp_path: Path, runs_ahead: bool, persistence: PersistenceSettings
) -> None:
    """Its former files go before it gets its own, though it is never missing when the stores are looked after."""
    driver = Driver(service(tmp_path, queue(persistence=persistence)), runs_ahead)
    driver.turn(*writes(1, 2))
    other = IN_MEMORY if persistence is ON_DISK else ON_DISK
    driver.turn(delete("orders"), create(queue(persistence=other)), *writes(2, 3))
    answers = driver.turn(ConsumerJoined("P/S/orders", READER))
    assert payloads_of([each for each in answers if isinstance(each, Delivery)]) == [b"2", b"3"]
    driver.close()
    again = service(tmp_path, queue(persistence=other))
    assert [sample.identity.sequence_number for sample in again.engine.hosted.by_name["P/S/orders"].held] == [2, 3]
    again.stores.close()
