"""The embedded service: state between commands, one command at a time, restart after anything."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings
from qsctl.config.settings import ServiceConfiguration, ServicePersistenceSettings, ServiceQosSettings
from qsctl.core.admin.command import CreateQueue, DeleteQueue, Shutdown
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.messages import AckResponse, SampleFlag
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
)
from qsctl.errors import Refused
from qsctl.instant import SECOND_NS
from qsctl.resource import ResourceKind
from qsctl.service.directory._embedded_instance import EmbeddedInstance
from qsctl.service.directory._embedded_settings import DEFAULT_SETTINGS
from qsctl.service.directory.embedded import open_embedded
from tests.service.embedded_commands import (
    FULL_NAME,
    IN_MEMORY,
    ON_DISK,
    PERSISTENCE,
    SUBSCRIBER,
    create,
    messages,
    queue,
    status,
    write,
)


@pytest.fixture(params=PERSISTENCE)
def persistence(request: pytest.FixtureRequest) -> PersistenceSettings:
    return PERSISTENCE[request.param]


def test_state_survives_between_commands(tmp_path: Path, persistence: PersistenceSettings) -> None:
    with open_embedded(tmp_path / "s") as service:
        assert service.application_name == "qsctl"
        assert create(service, queue(persistence=persistence)) is ReturnCode.OK
    with open_embedded(tmp_path / "s") as service:
        assert create(service, queue(persistence=persistence)) is ReturnCode.DUPLICATED
        assert write(service, b"one", b"x" * 1_000) == [AckResponse.ACCEPTED] * 2
    with open_embedded(tmp_path / "s") as service:
        assert [each.payload for each in messages(service)] == [b"one", b"x" * 1_000]
        assert status(service).current_message_count == 2
    with open_embedded(tmp_path / "s") as service:
        (delivery,) = service.receive(FULL_NAME + "Orders", 1, 0.0)
        assert (delivery.payload, delivery.flags) == (b"one", SampleFlag.NONE)
        service.acknowledge(delivery, ok=True)
    with open_embedded(tmp_path / "s") as service:
        (delivery,) = service.receive(FULL_NAME + "Orders", 5, 0.0)
        assert delivery.payload == b"x" * 1_000
        assert delivery.flags == SampleFlag.NONE, "what nobody took is not redelivered"
        assert status(service).total.acknowledged_message_count == 1
        assert service.damage == []


def test_samples_that_a_restart_joins_are_received_one_by_one(tmp_path: Path, persistence: PersistenceSettings) -> None:
    payloads = [b"%d" % number for number in range(40)]
    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
        write(service, *payloads)
    with open_embedded(tmp_path / "s") as service:
        received = service.receive(FULL_NAME + "Orders", 100, 0.0)
        assert [each.payload for each in received] == payloads
        assert [service.acknowledge(each, ok=True) for each in received]
    with open_embedded(tmp_path / "s") as service:
        assert not status(service).current_message_count


def test_a_duplicate_of_a_retired_sample_is_known_in_the_next_command(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
        write(service, b"one")
        service.acknowledge(service.receive(FULL_NAME + "Orders", 1, 0.0)[0], ok=True)
    with open_embedded(tmp_path / "s") as service:
        assert write(service, b"one") == [AckResponse.ACCEPTED]
        assert messages(service) == []


def test_a_consumer_killed_before_it_acknowledges_gets_its_samples_again_flagged(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
        write(service, b"one", b"two")
    child = os.fork()
    if child == 0:
        with open_embedded(tmp_path / "s") as service:
            service.receive(FULL_NAME + "Orders", 1, 0.0)
            os._exit(0)
    os.waitpid(child, 0)
    with open_embedded(tmp_path / "s") as service:
        found = service.receive(FULL_NAME + "Orders", 5, 0.0)
        assert [(each.payload, each.flags, each.attempt) for each in found] == [
            (b"one", SampleFlag.REDELIVERED, 1),
            (b"two", SampleFlag.NONE, 1),
        ]


def test_a_rejected_sample_comes_back_unflagged_with_an_attempt_more(tmp_path: Path) -> None:
    with open_embedded(tmp_path / "s") as service:
        create(service, queue())
        write(service, b"one")
        service.acknowledge(service.receive(FULL_NAME + "Orders", 1, 0.0)[0], ok=False)
    with open_embedded(tmp_path / "s") as service:
        (delivery,) = service.receive(FULL_NAME + "Orders", 1, 0.0)
        assert (delivery.flags, delivery.attempt) == (SampleFlag.NONE, 2)


def test_no_more_samples_leave_the_queue_than_were_asked_for(tmp_path: Path) -> None:
    with open_embedded(tmp_path / "s") as service:
        create(service, queue())
        write(service, *(b"%d" % at for at in range(10)))
        first = service.receive(FULL_NAME + "Orders", 3, 0.0)
        second = service.receive(FULL_NAME + "Orders", 2, 0.0)
        assert [each.payload for each in first + second] == [b"0", b"1", b"2", b"3", b"4"]
        service.acknowledge_all(first + second, ok=True)
        assert status(service).current_sent_message_count == 0
        assert service.receive(FULL_NAME + "Orders", 0, 0.0) == []
        assert len(messages(service)) == 5


def test_deleting_a_queue_deletes_its_files(tmp_path: Path, persistence: PersistenceSettings) -> None:
    name = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Orders")
    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
        write(service, b"one")
    with open_embedded(tmp_path / "s") as service:
        assert service.request(DeleteQueue(name))[0].reply.retcode is ReturnCode.OK
    assert not list((tmp_path / "s").rglob("*Orders*"))
    with open_embedded(tmp_path / "s") as service:
        assert create(service, queue(persistence=persistence)) is ReturnCode.OK
        assert messages(service) == []


def test_files_left_by_a_crash_while_a_queue_was_deleted_are_not_found_again(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    name = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Orders")
    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
        write(service, b"one")
    left = {path: path.read_bytes() for path in (tmp_path / "s").rglob("*Orders*")}
    with open_embedded(tmp_path / "s") as service:
        service.request(DeleteQueue(name))
    for path, content in left.items():
        path.write_bytes(content)
    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
        assert messages(service) == []


def test_a_persistent_queue_whose_name_can_be_no_file_is_refused_by_the_service(tmp_path: Path) -> None:
    with open_embedded(tmp_path / "s") as service:
        settings = replace(queue(persistence=IN_MEMORY), topic_name="a/b")
        (reply,) = service.request(CreateQueue(SUBSCRIBER, settings))
        assert reply.reply.retcode is ReturnCode.ERROR
        assert "'a/b' cannot be part of a file name" in reply.reply.text
        assert create(service, replace(queue(), topic_name="a/b")) is ReturnCode.OK, "a volatile one may"
    with open_embedded(tmp_path / "s") as service:
        assert write(service, b"one", topic="a/b") == [AckResponse.ACCEPTED]


class TestShutdown:
    def test_volatile_samples_and_counters_go_and_persistent_samples_stay(self, tmp_path: Path) -> None:
        subscriber = replace(
            DEFAULT_SETTINGS.participants[0].subscribers[0],
            queues=(queue("V"), queue("P", IN_MEMORY), queue("D", ON_DISK)),
        )
        settings = replace(
            DEFAULT_SETTINGS, participants=(replace(DEFAULT_SETTINGS.participants[0], subscribers=(subscriber,)),)
        )
        with open_embedded(tmp_path / "s", configuration=settings) as service:
            for name in "VPD":
                write(service, b"one", topic=name)
            create(service, queue("Created"))
        with open_embedded(tmp_path / "s", configuration=settings) as service:
            assert service.request(Shutdown())[0].reply.retcode is ReturnCode.OK
            with pytest.raises(Refused, match="the service is shut down"):
                service.request(Shutdown())
        with open_embedded(tmp_path / "s", configuration=settings) as service:
            assert [len(messages(service, name)) for name in "VPD"] == [0, 1, 1]
            assert status(service, "P").total.received_message_count == 0
            assert create(service, queue("Created")) is ReturnCode.OK, "it was gone"

    def test_a_persistent_service_state_keeps_the_queues_that_were_created(self, tmp_path: Path) -> None:
        kept = ServiceQosSettings(ServicePersistenceSettings(PersistenceKind.PERSISTENT))
        configuration = ServiceConfiguration("c", DEFAULT_SETTINGS, service_qos=kept)
        with open_embedded(tmp_path / "s", configuration=configuration) as service:
            create(service, queue())
            service.request(Shutdown())
        with open_embedded(tmp_path / "s", configuration=configuration) as service:
            assert create(service, queue()) is ReturnCode.DUPLICATED

    def test_a_shutdown_cut_short_is_finished_by_the_next_command(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
            write(service, b"one")
        monkeypatch.setattr(EmbeddedInstance, "end", lambda self: self._stores.close())
        with open_embedded(tmp_path / "s") as service:
            service.request(Shutdown())
        monkeypatch.undo()
        with open_embedded(tmp_path / "s") as service:
            assert create(service, queue()) is ReturnCode.OK
            assert messages(service) == []


def test_the_directory_and_its_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    with open_embedded(tmp_path / "s") as service:
        create(service, queue())
        create(service, queue("P", ON_DISK))
        write(service, b"one")
        write(service, b"one", topic="P")
    for path in [tmp_path / "s", *(tmp_path / "s").rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_files_are_in_the_configured_directory(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    filesystem = FilesystemSettings(directory=tmp_path / "data", file_prefix="X")
    configuration = ServiceConfiguration("c", DEFAULT_SETTINGS, filesystem=filesystem)
    with open_embedded(tmp_path / "s", configuration=configuration) as service:
        create(service, queue("P", IN_MEMORY))
        write(service, b"one", topic="P")
    assert {path.name for path in (tmp_path / "data").iterdir()} == {
        "Xservice@qsctl.db",
        "Xlog@qsctl_w0.db",
        "XP@SharedSubscriber@0@qsctl_m0.db",
        "Xstores@qsctl.json",
        "Xstores@qsctl.lock",
        "Xstores@qsctl.reserve",
    }
    with open_embedded(tmp_path / "s") as service:
        assert len(messages(service, "P")) == 1, "the instance knows where its files are"


@pytest.mark.slow(beyond=1)
def test_a_closed_service_leaves_no_objects_behind(tmp_path: Path, persistence: PersistenceSettings) -> None:
    """One process may open a directory 100,000 times: nothing is kept from the garbage collector."""

    def objects_after(openings: int) -> int:
        for _ in range(openings):
            with open_embedded(tmp_path / "s") as service:
                assert len(messages(service)) == 20
        gc.collect()
        return sys.getallocatedblocks()

    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
        write(service, *[b"x"] * 20)
    gc.collect()
    frozen_before = gc.get_freeze_count()
    before = objects_after(10)
    each = (objects_after(20) - before) / 20
    assert each < 50, "of more than 500 that it has while it is open"
    assert gc.get_freeze_count() == frozen_before


@pytest.mark.slow(beyond=1)
def test_a_store_does_not_grow_without_bounds(tmp_path: Path, persistence: PersistenceSettings) -> None:
    def size() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "s").rglob("*") if path.is_file())

    sizes: list[int] = []
    with open_embedded(tmp_path / "s") as service:
        create(service, queue(persistence=persistence))
    for number in range(5):
        with open_embedded(tmp_path / "s") as service:
            write(service, *[b"x" * 200] * 2_500, start=number * 2_500)
            service.acknowledge_all(service.receive(FULL_NAME + "Orders", 2_500, 0.0), ok=True)
        sizes.append(size())
    assert max(sizes) < 2.2 * sizes[0] + 1_000_000


def test_time_is_that_of_the_driver(tmp_path: Path) -> None:
    clock = [1_700_000_000_000_000_000]
    now: Callable[[], int] = lambda: clock[0]  # noqa: E731
    settings = replace(queue(), lifespan_ns=5_000_000_000)
    with open_embedded(tmp_path / "s", now=now) as service:
        create(service, settings)
        write(service, b"one")
        assert messages(service)[0].enqueued_at_ns == clock[0]
    clock[0] += 4_000_000_000
    with open_embedded(tmp_path / "s", now=now) as service:
        assert len(messages(service)) == 1
    clock[0] += 2_000_000_000
    with open_embedded(tmp_path / "s", now=now) as service:
        assert messages(service) == []
        assert status(service).total.expired_message_count == 1


def test_what_became_due_between_two_calls_precedes_the_second(tmp_path: Path) -> None:
    """A program keeps the service open: nothing runs between its calls."""
    clock = [1_700_000_000_000_000_000]
    settings = replace(queue(), lifespan_ns=5 * SECOND_NS, redelivery=RedeliverySettings(1, 2 * SECOND_NS))
    with open_embedded(tmp_path / "s", now=lambda: clock[0]) as service:
        create(service, settings)
        write(service, b"one", b"two", b"three")
        received = service.receive(FULL_NAME + "Orders", 2, 0.0)
        clock[0] += 3 * SECOND_NS
        assert status(service).current_sent_message_count == 0
        service.acknowledge(received[0], ok=False)
        assert [each.attempts for each in messages(service)] == [1, 1, 0], "the time-out came before the rejection"
        clock[0] += 3 * SECOND_NS
        assert status(service).current_message_count == 0
        assert status(service).total.expired_message_count == 3


def test_samples_whose_response_time_out_has_passed_make_no_window_larger(tmp_path: Path) -> None:
    clock = [1_700_000_000_000_000_000]
    settings = replace(queue(), redelivery=RedeliverySettings(9, 2 * SECOND_NS))
    with open_embedded(tmp_path / "s", now=lambda: clock[0]) as service:
        create(service, settings)
        write(service, *[b"one"] * 10)
        assert len(service.receive(FULL_NAME + "Orders", 5, 0.0)) == 5
        clock[0] += 3 * SECOND_NS
        assert len(service.receive(FULL_NAME + "Orders", 1, 0.0)) == 1
        clock[0] += 3 * SECOND_NS
        assert status(service).total.timeout_message_count == 6
        assert len(service.receive(FULL_NAME + "Orders", 1, 0.0)) == 1
        assert status(service).current_sent_message_count == 1
