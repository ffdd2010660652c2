"""The service of tests as several threads work it: callers of commands, the daemon's own, and one that fails in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.errors import Unavailable
from qsctl.testing import VirtualService
from tests.patience import eventually


@pytest.fixture
def service() -> Iterator[VirtualService]:
    with VirtualService() as made:
        made.create_queue("Orders", persistent=True, response_timeout="30s")
        yield made


def test_many_threads_ask_while_others_write_and_consume(service: VirtualService) -> None:
    count, consumed, failures = 200, [0], list[BaseException]()

    def writes() -> None:
        with QueueProducer("Orders", service.domain_id) as producer:
            for number in range(count):
                producer.write(b"%d" % number)
            assert producer.wait_for_acknowledgments() == 0

    def consumes() -> None:
        with QueueConsumer("Orders", "SharedSubscriber", service.domain_id) as consumer:
            consumed[0] = consumer.process(lambda _: None, max_samples=count)

    def asks() -> None:
        for _ in range(20):
            name = f"Other{threading.get_native_id()}"
            service.create_queue(name)
            held = service.status("Orders")[0]["current_message_count"]
            assert 0 <= held <= count
            service.delete_queue(name)

    def noted(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=noted, args=(each,)) for each in (writes, consumes, asks, asks, asks)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert consumed == [count]
    service.wait_until_idle()
    assert service.samples("Orders") == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("planted")])
def test_a_service_left_in_the_middle_of_its_work_is_replaced(
    service: VirtualService, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> bool:
        raise error

    with monkeypatch.context() as planted:
        planted.setattr(service._running._daemon, "serve_once", fails)
        with pytest.raises(type(error)):
            service.wait_until_processed()
    with pytest.raises(Unavailable, match="has ended"):
        service.messages("Orders")
    service.reset()
    service.create_queue("Orders")
    with QueueProducer("Orders", service.domain_id) as producer:
        producer.write(b"goes on")
        assert producer.wait_for_acknowledgments() == 0
    assert service.payloads("Orders") == [b"goes on"]


def test_a_service_that_stopped_is_replaced(service: VirtualService) -> None:
    service._running._daemon.stop("planted")
    assert eventually(lambda: service._running._has_ended)
    with pytest.raises(Unavailable, match="has ended: planted"):
        service.status("Orders")
    service.reset()
    service.create_queue("Orders")
    assert service.samples("Orders") == []


def test_a_persistent_sample_is_stored_once_the_service_rests(service: VirtualService) -> None:
    with QueueProducer("Orders", service.domain_id) as producer:
        for number in range(50):
            producer.write(b"%d" % number)
        producer.flush()
        service.wait_until_processed()
        assert service._running._daemon.is_idle
        assert len(service.messages("Orders")) == 50
        producer.flush()
        assert producer.is_acknowledged()
