"""The fixture's object as a `qsctl.Service`: its verbs work on the service of the tests, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import qsctl
from qsctl.errors import NotFound, Refused, UsageError
from qsctl.testing import VirtualService
from qsctl.testing._running_service import SUBSCRIBER


@pytest.fixture(scope="module")
def shared() -> Iterator[VirtualService]:
    with VirtualService() as made:
        yield made


@pytest.fixture
def service(shared: VirtualService) -> Iterator[VirtualService]:
    shared.reset()
    shared.create_queue("Orders", max_delivery_retries=1, response_timeout="30s")
    yield shared
    shared.reset()


def test_it_is_a_service(service: qsctl.Service) -> None:
    assert isinstance(service, qsctl.Service)
    assert service.domain_id is not None
    names = {row["queue_name"].rpartition("/")[2] for row in service.data()}
    assert names == {"Orders", "DeadLetters"}


def test_samples_are_produced_consumed_and_shown_as_rows(service: VirtualService) -> None:
    assert service.produce("Orders", [b"one", b"two", b"three"])["accepted"] == [3]
    assert service.messages("Orders")["payload"] == ["one", "two", "three"]
    consumed = service.consume("Orders", count=2)
    next(consumed).acknowledge()
    next(consumed).reject()
    assert service.status("Orders")["acknowledged_message_count"] == [1]
    assert service.payloads("Orders") == [b"two", b"three"]
    assert service.flush_queue("Orders")
    assert not service.messages("Orders")


def test_dead_letters_are_requeued_and_moved_in_virtual_time(service: VirtualService) -> None:
    service.create_queue("Others")
    with service.producer("Orders") as producer, service.consumer("Orders") as mute:
        producer.write(b"hopeless")
        assert producer.wait_for_acknowledgments() == 0
        mute.receive(1)
        service.advance("1m")
    assert [each.reason for each in service.dead_letters("Orders")] == ["MAX_RETRIES"]
    assert service.requeue("DeadLetters")["moved_count"] == [1]
    assert (service.payloads("Orders"), service.payloads("DeadLetters")) == ([b"hopeless"], [])
    service.move("Orders", "Others")
    assert service.payloads("Others") == [b"hopeless"]


def test_what_wait_waits_for_may_come_from_a_sample_just_written(service: VirtualService) -> None:
    with service.producer("Orders") as producer:
        producer.write(b"one")
        producer.wait_for_acknowledgments()
        assert service.wait("Orders", until="current_message_count=1", timeout="10s")


def test_a_configuration_is_planned_applied_and_read_back(service: VirtualService, tmp_path: Path) -> None:
    file = tmp_path / "wanted.xml"
    file.write_text(service.configuration().content.xml().replace('"Orders"', '"Renamed"'), encoding="utf-8")
    assert 'name="Renamed"' in file.read_text(encoding="utf-8")
    before = service.data()["queue_name"]
    assert service.plan(file)
    assert service.data()["queue_name"] == before, "a plan changes nothing"
    service.apply(file, prune=True)
    assert {name.rpartition("/")[2] for name in service.data()["queue_name"]} == {"Renamed", "DeadLetters"}


def test_a_recording_has_what_happened(service: VirtualService, tmp_path: Path) -> None:
    with service.record(tmp_path / "run"):
        service.produce("Orders", b"one")
    assert list((tmp_path / "run").iterdir())


def test_samples_are_exported_and_imported(service: VirtualService, tmp_path: Path) -> None:
    service.create_queue("Others")
    service.produce("Orders", [b"one", b"two"])
    service.export("Orders", tmp_path / "orders.jsonl")
    service.import_(tmp_path / "orders.jsonl", "Others")
    assert service.payloads("Others") == [b"one", b"two"]


def test_the_next_test_has_nothing_of_what_the_verbs_made(shared: VirtualService) -> None:
    shared.reset()
    domain_id = shared.domain_id
    shared.create_queue("Orders", subscriber="Other")
    shared.create_queue("Asked", reply_type="DDS::Octets")
    shared.create_subscriber("Third")
    producer = shared.producer("Other/Orders")
    producer.write(b"one")
    producer.wait_for_acknowledgments()
    held = next(shared.consume("Other/Orders"))
    assert held.payload == b"one"
    shared.reset()
    assert shared.domain_id == domain_id, "no client is left"
    assert not shared.data()
    with pytest.raises(Refused, match="is closed"):
        producer.flush()
    with pytest.raises(NotFound):
        shared.delete_subscriber("Third")


def test_a_test_that_deletes_the_shared_subscriber_leaves_one_to_the_next(shared: VirtualService) -> None:
    shared.delete_subscriber(SUBSCRIBER)
    shared.reset()
    shared.create_queue("Orders")
    assert shared.payloads("Orders") == []


def test_producers_of_the_service_go_on_after_a_restart(service: VirtualService) -> None:
    producer = service.producer("Orders")
    service.restart()
    producer.write(b"after")
    assert producer.wait_for_acknowledgments() == 0
    assert service.payloads("Orders") == [b"after"]


@pytest.mark.parametrize(("name", "settings"), [("Orders", {"no_such": 1}), ("Orders", {"max_count": "many"})])
def test_a_wrong_setting_is_refused(shared: VirtualService, name: str, settings: dict[str, object]) -> None:
    shared.reset()
    with pytest.raises(UsageError):
        shared.create_queue(name, **settings)  # type: ignore[arg-type]
    assert not shared.data()


def test_a_closed_one_refuses_every_verb() -> None:
    service = VirtualService()
    service.close()
    service.close()
    with pytest.raises(Refused, match="is closed"):
        service.create_queue("Orders")
