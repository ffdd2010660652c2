"""Clients whose work is interrupted: the service restarts, the queue is made again, the task is cancelled, time passes.

The service of tests makes each of them happen at a chosen point of a client's work.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import anyio
import pytest

from qsctl.client import QueueConsumer, QueueProducer, ReceivedSample, aio
from qsctl.errors import NoAnswer
from qsctl.testing import VirtualService
from tests.patience import eventually


@pytest.fixture(scope="module")
def shared() -> Iterator[VirtualService]:
    with VirtualService() as made:
        yield made


@pytest.fixture
def service(shared: VirtualService) -> Iterator[VirtualService]:
    yield shared
    shared.reset()


def consumer_of(service: VirtualService, topic: str = "Orders") -> QueueConsumer[bytes]:
    return QueueConsumer(topic, "SharedSubscriber", service.domain_id, unacked_threshold=100)


def write(service: VirtualService, *payloads: bytes) -> None:
    with QueueProducer("Orders", service.domain_id) as producer:
        assert producer.write_many(payloads) == []


def received(consumer: QueueConsumer[bytes], count: int) -> list[ReceivedSample[bytes]]:
    """Receive a number of samples, however many come at a time."""
    samples: list[ReceivedSample[bytes]] = []
    assert eventually(lambda: len(samples.__iadd__(consumer.receive(count - len(samples), 0.05))) >= count)
    return samples


def test_a_restart_under_an_open_batch_loses_nothing(service: VirtualService) -> None:
    """The acknowledgments of the batch reach a service that has sent nothing yet: its samples come again, flagged."""
    service.create_queue("Orders", persistent=True, response_timeout="30s")
    payloads = [b"%d" % number for number in range(5)]
    write(service, *payloads)
    seen: list[tuple[bytes, bool]] = []
    with consumer_of(service) as consumer:
        for batch in consumer.batches(5):
            if not seen:
                service.restart()
                assert sorted(service.payloads("Orders")) == payloads
            seen += [(each.value, each.redelivered) for each in batch]
            if {value for value, redelivered in seen if redelivered} == set(payloads):
                consumer.stop()
    assert [value for value, redelivered in seen if not redelivered] != []
    assert service.payloads("Orders") == []
    assert service.dead_letters("Orders") == []


def test_an_iteration_goes_on_in_the_queue_that_was_made_again(service: VirtualService) -> None:
    service.create_queue("Orders", response_timeout="30s")
    seen: list[tuple[bytes, bool]] = []
    with consumer_of(service) as consumer:
        consumer.wait_for_queue()

        def iterate() -> None:
            for sample in consumer:
                seen.append((sample.value, sample.redelivered))
                sample.acknowledge()

        thread = threading.Thread(target=iterate)
        thread.start()
        try:
            for payload in (b"of the first", b"of the second", b"of the third"):
                write(service, payload)
                assert eventually(lambda payload=payload: seen[-1:] == [(payload, False)])  # type: ignore[misc]
                service.wait_until_idle()
                service.delete_queue("Orders")
                service.create_queue("Orders", response_timeout="30s")
        finally:
            consumer.stop()
            thread.join()
    assert len(seen) == 3
    assert service.payloads("Orders") == []


def test_a_sample_of_a_deleted_queue_is_acknowledged_in_vain(service: VirtualService) -> None:
    service.create_queue("Orders", response_timeout="30s")
    write(service, b"of the first")
    with consumer_of(service) as consumer:
        for batch in consumer.batches(1, max_samples=1):
            assert batch[0].value == b"of the first"
            service.delete_queue("Orders")
            service.create_queue("Orders", response_timeout="30s")
            write(service, b"of the second")
        service.wait_until_processed()
        assert service.payloads("Orders") == [b"of the second"], "the acknowledgment is not for this one"
        (sample,) = received(consumer, 1)
        assert (sample.value, sample.redelivered) == (b"of the second", False)
        sample.acknowledge()
    assert service.payloads("Orders") == []


def test_a_cancelled_write_many_has_written_a_beginning_and_the_producer_goes_on(service: VirtualService) -> None:
    service.create_queue("Orders")
    given: list[bytes] = []

    def endless(enough: anyio.Event) -> Iterator[bytes]:
        for number in itertools.count():
            given.append(b"%d" % number)
            if number == 500:
                enough.set()
            yield given[-1]

    async def cancels() -> None:
        async with aio.QueueProducer("Orders", service.domain_id) as producer:
            await producer.wait_for_queue()
            enough = anyio.Event()
            async with anyio.create_task_group() as group:
                group.start_soon(producer.write_many, endless(enough))
                await enough.wait()
                group.cancel_scope.cancel()
            await producer.write(b"after")
            await producer.wait_for_acknowledgments()
            assert await producer.write_many([b"last"]) == []

    anyio.run(cancels)
    held = service.payloads("Orders")
    assert held[-2:] == [b"after", b"last"]
    assert len(held) > 500
    assert held[:-2] == given[: len(held) - 2], "what was written before the cancellation, without a gap"


def test_a_cancelled_batch_returns_to_the_queue(service: VirtualService) -> None:
    service.create_queue("Orders", max_delivery_retries=0, response_timeout="30s")
    write(service, b"one", b"two", b"three")

    async def cancels() -> None:
        async with aio.QueueConsumer("Orders", "SharedSubscriber", service.domain_id, unacked_threshold=10) as consumer:
            begun = anyio.Event()

            async def work() -> None:
                async for batch in consumer.batches(10):
                    assert batch
                    begun.set()
                    await anyio.sleep_forever()

            async with anyio.create_task_group() as group:
                group.start_soon(work)
                await begun.wait()
                group.cancel_scope.cancel()

    anyio.run(cancels)
    service.wait_until_processed()
    assert sorted(service.payloads("Orders")) == [b"one", b"three", b"two"]
    assert service.dead_letters("Orders") == [], "it counts as no attempt"
    with consumer_of(service) as consumer:
        samples = received(consumer, 3)
        assert any(each.redelivered for each in samples), "those of the batch may have been processed"
        consumer.acknowledge(samples)
    assert service.payloads("Orders") == []


def test_a_cancelled_replier_answers_the_request_in_progress_and_returns_the_others(service: VirtualService) -> None:
    service.create_queue("Orders", reply_type="DDS::Octets", response_timeout="30s", max_delivery_retries=3)
    handled: list[bytes] = []
    replies: list[bytes] = []

    async def cancels() -> None:
        domain_id = service.domain_id
        async with aio.QueueRequester("Orders", "SharedSubscriber", domain_id) as requester:
            async with aio.QueueReplier("Orders", "SharedSubscriber", domain_id) as replier:
                await requester.wait_for_queue()
                begun, go_on = anyio.Event(), anyio.Event()

                async def answer(request: ReceivedSample[bytes]) -> bytes:
                    handled.append(request.value)
                    begun.set()
                    await go_on.wait()
                    return request.value.upper()

                first = await requester.send(b"first")
                async with anyio.create_task_group() as group:
                    group.start_soon(replier.process, answer)
                    await begun.wait()
                    second = await requester.send(b"second")
                    group.cancel_scope.cancel()
                    go_on.set()
                assert handled == [b"first"]
                replies.extend(await requester.replies(first))
            async with aio.QueueReplier("Orders", "SharedSubscriber", domain_id) as later:

                async def answer_later(request: ReceivedSample[bytes]) -> bytes:
                    handled.append(request.value)
                    return request.value.upper()

                assert await later.process(answer_later, max_samples=1) == 1
                replies.extend(await requester.replies(second))

    anyio.run(cancels)
    assert handled == [b"first", b"second"]
    assert replies == [b"FIRST", b"SECOND"]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_response_timeout_in_the_body_of_a_batch_leaves_the_late_answer_to_the_queue(
    service: VirtualService, retries: int
) -> None:
    service.create_queue("Orders", max_delivery_retries=retries, response_timeout="30s")
    write(service, b"slow")
    with consumer_of(service) as consumer:
        for batch in consumer.batches(1, max_samples=1):
            assert [each.redelivered for each in batch] == [False]
            service.advance("30s")
            assert service.status("Orders")["timeout_message_count"] == [1]
        if retries:
            # It was sent again: the answer is for either delivery.
            service.wait_until_processed()
    assert service.payloads("Orders") == []
    assert [each.payload for each in service.dead_letters("Orders")] == [b"slow"] * (not retries)


def test_a_lifespan_that_ends_in_the_body_of_a_batch_expires_the_sample(service: VirtualService) -> None:
    service.create_queue("Orders", lifespan="10s", response_timeout="1h")
    write(service, b"quote")
    with consumer_of(service) as consumer:
        for batch in consumer.batches(1, max_samples=1):
            assert batch[0].value == b"quote"
            service.advance("10s")
        service.wait_until_processed()
        assert consumer.receive_available(1) == [], "it does not come again"
    assert service.payloads("Orders") == []


def test_a_response_timeout_between_consume_and_acknowledge_redelivers(service: VirtualService) -> None:
    service.create_queue("Orders", max_delivery_retries=2, response_timeout="30s")
    service.produce("Orders", b"slow")
    sample = next(service.consume("Orders", count=1))
    service.advance("30s")
    assert service.status("Orders")["timeout_message_count"] == [1]
    sample.acknowledge()
    service.wait_until_processed()
    assert service.payloads("Orders") == []


def test_a_writer_without_a_queue_has_no_answer_in_time(service: VirtualService) -> None:
    service.create_queue("Orders")
    with QueueProducer("Orders", service.domain_id) as producer:
        producer.wait_for_queue()
        service.delete_queue("Orders")
        with pytest.raises(NoAnswer):
            producer.wait_for_queue(0.05)
        service.create_queue("Orders")
        assert producer.write_many([b"goes on"]) == []
    assert service.payloads("Orders") == [b"goes on"]
