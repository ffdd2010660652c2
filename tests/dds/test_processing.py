"""What the wrappers do around a program's own work: batches, attempts, a graceful end, former names."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import anyio
import msgspec
import pytest

from qsctl.client import (
    JsonCodec,
    QueueConsumer,
    QueueProducer,
    QueueReplier,
    QueueRequester,
    ReceivedSample,
    Retry,
    aio,
    stopped_by_signals,
)
from qsctl.errors import NoAnswer, Refused
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess

QUICK = Retry(attempts=3, first_s=0.01)


def queue_of(name: str, more: str = "", qos: str = "") -> str:
    return f"""
<shared_reader_queue name="{name}" session="s"><topic_name>{name}</topic_name><type_name>DDS::Octets</type_name>
{more}<queue_qos>{qos}</queue_qos></shared_reader_queue>"""


RETRIES = "<redelivery><max_delivery_retries>5</max_delivery_retries></redelivery>"
QUEUES = "".join(
    [
        queue_of("Orders"),
        queue_of("Again", qos=RETRIES),
        queue_of("Stopped", qos=RETRIES),
        queue_of("Cancelled", qos=RETRIES),
        queue_of("Odd"),
        queue_of("Asked", more="<reply_type>DDS::Octets</reply_type>"),
        queue_of(
            "Small",
            qos="<resource_limits><queue_allocation_settings><max_count>1</max_count></queue_allocation_settings>"
            "</resource_limits>",
        ),
    ]
)


class Order(msgspec.Struct):
    number: int


@pytest.fixture(scope="module")
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture(scope="module", autouse=True)
def service(tmp_path_factory: pytest.TempPathFactory, domain: int) -> Iterator[ServiceProcess]:
    running = ServiceProcess(tmp_path_factory.mktemp("service"), domain, queues=QUEUES)
    try:
        yield running
        running.stop()
    finally:
        running.end()


def write(topic: str, domain: int, *payloads: bytes) -> None:
    with QueueProducer(topic, domain) as producer:
        producer.wait_for_queue()
        for each in payloads:
            producer.write(each)
        assert producer.wait_for_acknowledgments() == 0


def left_in(topic: str, domain: int) -> list[tuple[bytes, bool]]:
    with QueueConsumer(topic, "S", domain, unacked_threshold=100) as consumer:
        consumer.wait_for_queue()
        found: list[tuple[bytes, bool]] = []
        while samples := consumer.receive_available(100):
            found += [(each.value, each.redelivered) for each in samples]
            consumer.acknowledge(samples)
        return found


def test_batches_are_what_has_come_and_are_acknowledged_as_one(domain: int) -> None:
    write("Orders", domain, *(b"%d" % number for number in range(25)))
    seen: list[bytes] = []
    with QueueConsumer("Orders", "S", domain, unacked_threshold=100) as consumer:
        for batch in consumer.batches(10):
            assert 1 <= len(batch) <= 10
            seen += [each.value for each in batch]
            consumer.acknowledge(batch)
            if len(seen) == 25:
                consumer.stop()
    assert seen == [b"%d" % number for number in range(25)]
    assert left_in("Orders", domain) == []


def test_a_handler_is_tried_again_and_the_sample_rejected_after_the_last_attempt(domain: int) -> None:
    write("Again", domain, b"sound", b"flaky", b"broken")
    calls: list[bytes] = []

    def handle(sample: ReceivedSample[bytes]) -> None:
        calls.append(sample.value)
        if sample.value == b"broken" or (sample.value == b"flaky" and calls.count(b"flaky") < 3):
            raise RuntimeError("not yet")

    with QueueConsumer("Again", "S", domain) as consumer:
        assert consumer.process(handle, retry=QUICK, max_samples=3) == 2
    assert calls == [b"sound", b"flaky", b"flaky", b"flaky", b"broken", b"broken", b"broken"]
    assert left_in("Again", domain) == [(b"broken", False)], "rejected, and delivered again"


def test_a_handler_may_acknowledge_by_itself(domain: int) -> None:
    write("Orders", domain, b"one")
    with QueueConsumer("Orders", "S", domain) as consumer:
        assert consumer.process(lambda sample: sample.acknowledge(), max_samples=1) == 1
    assert left_in("Orders", domain) == []


def test_a_payload_that_the_codec_cannot_decode_costs_that_sample_alone(domain: int) -> None:
    write("Odd", domain, b'{"number":1}', b"nonsense", b'{"number":2}')
    with QueueConsumer("Odd", "S", domain, codec=JsonCodec(Order), unacked_threshold=100) as consumer:
        numbers = [consumer.receive(1)[0].value.number for _ in range(2)]
        consumer.acknowledge_all()
        assert (numbers, consumer.undecodable_count) == ([1, 2], 1)
    assert left_in("Odd", domain) == [], "the queue retries nothing: its rejection ends the sample"


def test_sigterm_finishes_the_sample_in_progress_and_returns_the_others(domain: int) -> None:
    write("Stopped", domain, b"first", b"second", b"third")
    done: list[bytes] = []

    def handle(sample: ReceivedSample[bytes]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        done.append(sample.value)

    before = signal.getsignal(signal.SIGTERM)
    with QueueConsumer("Stopped", "S", domain, unacked_threshold=100) as consumer, stopped_by_signals(consumer):
        assert consumer.process(handle) == 1
        assert signal.getsignal(signal.SIGTERM) is before, "a second signal is the former handler's"
    assert done == [b"first"]
    assert left_in("Stopped", domain) == [(b"second", False), (b"third", False)]


def test_an_interrupted_handler_returns_its_sample_without_an_attempt(domain: int) -> None:
    write("Stopped", domain, b"held")

    def interrupted(sample: ReceivedSample[bytes]) -> None:
        raise KeyboardInterrupt

    with QueueConsumer("Stopped", "S", domain) as consumer, pytest.raises(KeyboardInterrupt):
        consumer.process(interrupted)
    assert left_in("Stopped", domain) == [(b"held", True)]


def test_stop_of_another_thread_ends_a_wait(domain: int) -> None:
    with QueueConsumer("Orders", "S", domain) as consumer:
        consumer.wait_for_queue()
        stopper = threading.Timer(0.1, consumer.stop)
        stopper.start()
        assert list(consumer) == []
        stopper.join()
        assert consumer.receive(1, 60.0) == []


def test_a_cancelled_task_finishes_its_sample_and_returns_the_others(domain: int) -> None:
    write("Cancelled", domain, b"first", b"second")
    done: list[bytes] = []

    async def main() -> None:
        async with (
            aio.QueueConsumer("Cancelled", "S", domain, unacked_threshold=100) as consumer,
            anyio.create_task_group() as tasks,
        ):

            async def handle(sample: ReceivedSample[bytes]) -> None:
                tasks.cancel_scope.cancel()
                await anyio.sleep(0.05)
                done.append(sample.value)

            tasks.start_soon(consumer.process, handle)

    anyio.run(main)
    assert done == [b"first"]
    assert left_in("Cancelled", domain) == [(b"second", False)]


def test_tasks_iterate_over_batches_and_try_again(domain: int) -> None:
    write("Again", domain, *(b"%d" % number for number in range(6)))
    failures = iter([RuntimeError("once")])

    async def main() -> int:
        async with aio.QueueConsumer("Again", "S", domain, unacked_threshold=100) as consumer:
            count = 0
            async for batch in consumer.batches(2):
                await consumer.acknowledge(batch)
                count += len(batch)
                if count >= 4:
                    break

            async def handle(sample: ReceivedSample[bytes]) -> None:
                for failure in failures:
                    raise failure

            return count + await consumer.process(handle, retry=QUICK, max_samples=6 - count)

    assert anyio.run(main) == 6
    assert left_in("Again", domain) == []


def test_a_rejected_sample_is_written_again_until_there_is_room(domain: int) -> None:
    write("Small", domain, b"in the way")
    with QueueProducer("Small", domain) as producer:
        producer.wait_for_queue()
        with pytest.raises(Refused, match="after at most 3 attempts"):
            producer.write_until_accepted(b"refused", retry=QUICK)
        consumer = threading.Timer(0.2, left_in, ("Small", domain))
        consumer.start()
        identity = producer.write_until_accepted(b"patient", retry=Retry(attempts=1000, first_s=0.02, factor=1.0))
        consumer.join()
        assert identity.writer_guid == producer.state.writer_guid
        assert producer.wait_for_acknowledgments() == 0, "its rejections are not counted"

    async def refused() -> None:
        async with aio.QueueProducer("Small", domain) as producer:
            await producer.wait_for_queue()
            await producer.write_until_accepted(b"refused", retry=QUICK)

    left_in("Small", domain)
    write("Small", domain, b"in the way")
    with pytest.raises(Refused, match="rejected by a queue"):
        anyio.run(refused)
    left_in("Small", domain)


def test_no_acknowledgment_in_time_is_no_answer(domain: int) -> None:
    with QueueProducer("Nowhere", domain) as producer, pytest.raises(NoAnswer, match="acknowledgment of sample"):
        producer.write_until_accepted(b"lost", timeout_s=0.1)


def test_former_names_work_and_warn(domain: int) -> None:
    write("Again", domain, b"one", b"two", b"three")
    with QueueConsumer("Again", "S", domain, unacked_threshold=100) as consumer:
        while consumer.state.waiting_count < 3:
            consumer.flush()
        one, two, _ = consumer.receive(3)
        with pytest.warns(DeprecationWarning, match="reject"):
            one.acknowledge(False)
        with pytest.warns(DeprecationWarning, match="reject"):
            consumer.acknowledge(two, accepted=True)
        with pytest.warns(DeprecationWarning, match="reject_all"):
            assert consumer.acknowledge_all(True) == 1
    assert left_in("Again", domain) == [(b"one", False)]
    with QueueReplier("Asked", "S", domain) as replier, QueueRequester("Asked", "S", domain) as requester:
        for each in (replier, requester):
            with pytest.warns(DeprecationWarning, match="wait_for_queue"):
                each.wait_for_queues()
        requester.send(b"?")
        with pytest.warns(DeprecationWarning, match="max_samples"):
            (request,) = replier.receive(max_requests=1)
        replier.reply(request, b"!", finish=False)
        with pytest.warns(DeprecationWarning, match="acknowledge"):
            replier.finish(request)


def test_a_batch_is_accepted_behind_its_body_and_the_loop_ends_at_its_number(domain: int) -> None:
    write("Again", domain, *(b"%d" % number for number in range(5)))
    with QueueConsumer("Again", "S", domain, unacked_threshold=1) as consumer:
        sizes = [len(batch) for batch in consumer.batches(10, max_samples=4)]
        assert sum(sizes) == 4
        assert max(sizes) <= 2, "the threshold bounds a batch"
    assert left_in("Again", domain) == [(b"4", False)]


def test_a_batch_is_rejected_by_an_exception_and_returned_by_a_break(domain: int) -> None:
    write("Again", domain, b"one")
    with pytest.raises(RuntimeError, match="planted"), QueueConsumer("Again", "S", domain) as consumer:
        for _ in consumer.batches():
            raise RuntimeError("planted")
    with QueueConsumer("Again", "S", domain) as consumer:
        for (sample,) in consumer.batches():
            assert not sample.redelivered, "a rejection sets no flag"
            break
    assert left_in("Again", domain) == [(b"one", True)]


def test_what_a_body_rejected_itself_is_not_accepted_behind_it(domain: int) -> None:
    write("Again", domain, b"odd")
    attempts = 0
    with QueueConsumer("Again", "S", domain) as consumer:
        for batch in consumer.batches(max_samples=3):
            attempts += 1
            consumer.reject(batch)
            consumer.flush()
    assert attempts == 3
    assert left_in("Again", domain) == [(b"odd", False)]


def test_batches_of_tasks_are_answered_as_blocking_ones(domain: int) -> None:
    write("Again", domain, b"one", b"two")

    async def consume(fails: bool) -> None:
        async with aio.QueueConsumer("Again", "S", domain) as consumer:
            async for _ in consumer.batches(1, max_samples=1):
                if fails:
                    raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        anyio.run(consume, True)
    anyio.run(consume, False)
    assert left_in("Again", domain) == [(b"two", False)]


def test_write_many_returns_what_a_full_queue_rejected(domain: int) -> None:
    with QueueProducer("Small", domain) as producer:
        assert producer.write_many([b"fits", b"second", b"third"]) == [b"second", b"third"]
        assert producer.wait_for_acknowledgments() == 0, "they are reported once"
    assert left_in("Small", domain) == [(b"fits", False)]


def test_a_codec_that_raises_anything_costs_that_sample_alone(domain: int) -> None:
    class Fragile:
        def encode(self, value: str) -> bytes:
            return value.encode()

        def decode(self, payload: bytes) -> str:
            return {b"sound": "sound"}[payload]

    write("Odd", domain, b"broken", b"sound")
    with QueueConsumer("Odd", "S", domain, codec=Fragile(), unacked_threshold=100) as consumer:
        assert [each.value for each in consumer.receive(1)] == ["sound"]
        assert consumer.undecodable_count == 1
        consumer.acknowledge_all()


def test_a_replier_works_in_a_thread_until_its_block_ends(domain: int) -> None:
    with (
        QueueReplier("Asked", "S", domain) as replier,
        QueueRequester("Asked", "S", domain) as requester,
        replier.processing(lambda request: request.value.upper()),
    ):
        assert [requester.request(each) for each in (b"one", b"two")] == [b"ONE", b"TWO"]


def test_a_child_of_a_fork_is_refused_and_leaves_nothing_of_its_parent(domain: int) -> None:
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        child = os.fork()
        if not child:
            try:
                producer.write(b"of the child")
                producer.wait_for_acknowledgments()
            except Refused:
                producer.close()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert producer.write_many([b"of the parent"]) == []
    assert left_in("Orders", domain) == [(b"of the parent", False)]
