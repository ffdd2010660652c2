"""The wrappers of chapter 8, blocking and awaitable, against a running service."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from qsctl.client import QueueConsumer, QueueProducer, QueueReplier, QueueRequester
from qsctl.client.aio import QueueConsumer as AwaitableConsumer
from qsctl.client.aio import QueueProducer as AwaitableProducer
from qsctl.client.aio import QueueReplier as AwaitableReplier
from qsctl.client.aio import QueueRequester as AwaitableRequester
from qsctl.errors import NoAnswer, UsageError
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess
from tests.patience import PATIENCE_S
from tests.processes import run

QUEUES = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
</shared_reader_queue>
<shared_reader_queue name="Quotes" session="s">
  <topic_name>Quotes</topic_name><type_name>DDS::Octets</type_name><reply_type>DDS::Octets</reply_type>
</shared_reader_queue>
<shared_reader_queue name="Prices" session="s">
  <topic_name>Prices</topic_name><type_name>DDS::Octets</type_name><reply_type>DDS::Octets</reply_type>
</shared_reader_queue>
<shared_reader_queue name="Riddles" session="s">
  <topic_name>Riddles</topic_name><type_name>DDS::Octets</type_name><reply_type>DDS::Octets</reply_type>
</shared_reader_queue>
<shared_reader_queue name="Small" session="s">
  <topic_name>Small</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><resource_limits><queue_allocation_settings><max_count>3</max_count></queue_allocation_settings>
  </resource_limits></queue_qos>
</shared_reader_queue>
<shared_reader_queue name="Silent" session="s">
  <topic_name>Silent</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><reliability><app_ack_sample_to_producer>false</app_ack_sample_to_producer></reliability></queue_qos>
</shared_reader_queue>
<shared_reader_queue name="Feedback" session="s">
  <topic_name>Feedback</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><distribution><kind>ROUND_ROBIN</kind><property><value><element>
    <name>ALLOW_CONSUMER_FEEDBACK</name><value>1</value></element></value></property></distribution></queue_qos>
</shared_reader_queue>
"""


@pytest.fixture(scope="module")
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, domain: int) -> Iterator[ServiceProcess]:
    running = ServiceProcess(tmp_path_factory.mktemp("service"), domain, queues=QUEUES)
    try:
        yield running
        running.stop()
    finally:
        running.end()


class Words:
    """A codec: text as UTF-8."""

    def encode(self, value: str) -> bytes:
        return value.encode()

    def decode(self, payload: bytes) -> str:
        return payload.decode()


@pytest.mark.usefixtures("service")
class TestBlocking:
    def test_values_travel_through_a_codec_in_order(self, domain: int) -> None:
        with (
            QueueProducer("Orders", domain, codec=Words()) as producer,
            QueueConsumer("Orders", "S", domain, codec=Words()) as consumer,
        ):
            assert producer.wait_for_queue() == ("Orders@S",)
            consumer.wait_for_queue()
            written = [producer.write(word) for word in ("uno", "dos", "tres")]
            assert producer.wait_for_acknowledgments() == 0
            assert [each.identity for each in producer.pop_acknowledged()] == written
            words: list[str] = []
            for sample in consumer:
                words.append(sample.value)
                sample.acknowledge()
                if len(words) == 3:
                    break
            assert words == ["uno", "dos", "tres"]
            with pytest.raises(UsageError, match="not held"):
                sample.acknowledge()

    def test_a_full_queue_rejects_and_the_producer_learns_which_samples(self, domain: int) -> None:
        with QueueProducer("Small", domain) as producer:
            producer.wait_for_queue()
            written = [producer.write(b"x") for _ in range(5)]
            assert producer.wait_for_acknowledgments() == 2
            assert [each.identity for each in producer.pop_acknowledged() if not each.accepted] == written[3:]

    def test_samples_for_a_queue_that_acknowledges_nothing_complete_at_once(self, domain: int) -> None:
        with (
            QueueProducer("Silent", domain) as producer,
            QueueConsumer("Silent", "S", domain) as consumer,
        ):
            producer.wait_for_queue()
            consumer.wait_for_queue()
            producer.write(b"said once")
            assert producer.wait_for_acknowledgments(0.5) == 0
            (sample,) = consumer.receive(1)
            assert sample.value == b"said once"
            sample.acknowledge()

    def test_a_sample_of_five_megabytes_travels_whole(self, domain: int) -> None:
        payload = bytes(range(256)) * 20_000
        with (
            QueueProducer("Orders", domain) as producer,
            QueueConsumer("Orders", "S", domain) as consumer,
        ):
            producer.wait_for_queue()
            consumer.wait_for_queue()
            producer.write(payload)
            assert producer.wait_for_acknowledgments() == 0
            (sample,) = consumer.receive(1)
            assert sample.value == payload
            sample.acknowledge()
            with pytest.raises(UsageError, match="too large"):
                producer.write(bytes(40_000_000))

    def test_a_consumer_that_closes_its_ears_is_not_sent_to(self, domain: int) -> None:
        with (
            QueueProducer("Feedback", domain) as producer,
            QueueConsumer("Feedback", "S", domain, feedback=True) as consumer,
        ):
            producer.wait_for_queue()
            consumer.wait_for_queue()
            consumer.set_availability(False)
            anyio.run(anyio.sleep, 0.3)
            producer.write(b"later")
            producer.wait_for_acknowledgments()
            assert consumer.receive(1, 0.5) == []
            consumer.set_availability(True, 0)
            (sample,) = consumer.receive(1)
            assert sample.value == b"later"
            sample.acknowledge()
        with QueueConsumer("Feedback", "S", domain) as deaf, pytest.raises(UsageError, match="without feedback"):
            deaf.set_availability(True)

    def test_a_queue_that_is_nowhere_is_no_answer(self, domain: int) -> None:
        with QueueProducer("Nowhere", domain) as producer, pytest.raises(NoAnswer, match="'Nowhere'"):
            producer.wait_for_queue(0.3)

    def test_every_reply_finds_its_request(self, domain: int) -> None:
        def serve(ready: threading.Event, count: int) -> None:
            with QueueReplier("Quotes", "S", domain) as replier:
                replier.wait_for_queue()
                ready.set()
                for request in replier:
                    replier.reply(request, request.value.upper())
                    count -= 1
                    if not count:
                        break
                assert replier.wait_for_acknowledgments() == 0

        ready = threading.Event()
        server = threading.Thread(target=serve, args=(ready, 21), daemon=True)
        server.start()
        with QueueRequester("Quotes", "S", domain) as one, QueueRequester("Quotes", "S", domain) as other:
            one.wait_for_queue()
            other.wait_for_queue()
            assert ready.wait(10)
            sent = [
                (requester, requester.send(f"{at}".encode() + b"a")) for at in range(10) for requester in (one, other)
            ]
            for at, (requester, identity) in reversed(list(enumerate(sent))):
                assert requester.replies(identity) == [f"{at // 2}A".encode()]
            assert one.request(b"last") == b"LAST"
            assert one.replies(sent[0][1], 1, 0.2) == [], "one reply each"
        server.join(10)

    def test_a_request_without_a_replier_is_no_answer(self, domain: int) -> None:
        with QueueRequester("Riddles", "S", domain) as requester, pytest.raises(NoAnswer, match="no reply"):
            requester.wait_for_queue()
            requester.request(b"anybody?", 0.4)


@pytest.mark.usefixtures("service")
class TestAwaitable:
    def test_tasks_share_a_producer_and_a_consumer(self, domain: int) -> None:
        async def main() -> list[int]:
            values: list[int] = []
            async with (
                AwaitableProducer("Orders", domain, window_count=50) as producer,
                AwaitableConsumer("Orders", "S", domain) as consumer,
            ):
                await producer.wait_for_queue()
                await consumer.wait_for_queue()

                async def consume() -> None:
                    async for sample in consumer:
                        values.append(int.from_bytes(sample.value, "big"))
                        await consumer.acknowledge(sample)
                        if len(values) >= 120:
                            return

                with anyio.fail_after(30):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(consume)
                        tasks.start_soon(producer.write_all, [n.to_bytes(2, "big") for n in range(100)])
                        for number in range(100, 120):
                            tasks.start_soon(producer.write, number.to_bytes(2, "big"))
                    assert await producer.wait_for_acknowledgments() == 0
                    assert len(await producer.pop_acknowledged()) == 120
            return values

        assert sorted(anyio.run(main)) == list(range(120))

    def test_requests_of_many_tasks_are_answered(self, domain: int) -> None:
        async def main() -> set[bytes]:
            answers: set[bytes] = set()
            async with (
                AwaitableRequester("Quotes", "S", domain) as requester,
                AwaitableReplier("Quotes", "S", domain) as replier,
            ):
                await requester.wait_for_queue()
                await replier.wait_for_queue()

                async def serve() -> None:
                    async for request in replier:
                        await replier.reply(request, request.value + b"!")

                async def ask(at: int) -> None:
                    answers.add(await requester.request(b"%d" % at))

                with anyio.fail_after(30):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(serve)
                        async with anyio.create_task_group() as asking:
                            for at in range(8):
                                asking.start_soon(ask, at)
                        tasks.cancel_scope.cancel()
            return answers

        assert {b"%d!" % at for at in range(8)} <= anyio.run(main)

    def test_a_cancelled_wait_ends_soon(self, domain: int) -> None:
        async def main() -> float:
            async with AwaitableConsumer("Orders", "S", domain) as consumer:
                begun = anyio.current_time()
                with anyio.move_on_after(0.1):
                    await consumer.receive(1, 30.0)
                return anyio.current_time() - begun

        assert anyio.run(main) < 25.0, "it does not wait for the 30 s"


@pytest.mark.slow
def test_the_command_line_asks_and_answers(service: Any, run_python: Callable[..., Any], domain: int) -> None:
    replier = run_python(
        "import sys; sys.argv[1:] = ['reply', 'Prices@S', '--text', 'quote for {}', '--count', '1', "
        f"'--timeout', '180s', '--service', 'dds:{domain}']; from qsctl.cli.app import main; main()"
    )
    asked = run(
        [sys.executable, "-m", "qsctl", "request", "Prices@S", "--text", "EURUSD", "--service", f"dds:{domain}",
         "--timeout", f"{PATIENCE_S:.0f}s"],
        cwd=service.directory,
    )  # fmt: skip
    assert (asked.returncode, asked.stdout.strip()) == (0, "quote for EURUSD"), asked.stderr
    assert replier.wait(PATIENCE_S) == 0
