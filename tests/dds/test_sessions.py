"""Sessions side by side [QS 3.3.9]: a process each, one service to everybody else."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from qsctl.client import QueueReplier, QueueRequester
from qsctl.client.administration import Administration, Duplicated
from qsctl.core.queue.settings import SessionSettings, SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import NotFound, Refused
from qsctl.resource import parse_resource
from tests.dds.service_process import eventually
from tests.dds.several_sessions import SeveralSessions, take, write
from tests.patience import PATIENCE_S

SUBSCRIBER = "/domain_participant/P/shared_subscriber/S"


@pytest.fixture
def service(tmp_path: Path, domain: int) -> Any:
    running = SeveralSessions(tmp_path, domain, "--lease", "2s", "--metrics-port", "0")
    yield running
    running.stop(signal.SIGKILL)


def queue(name: str, leaf: str = "") -> Any:
    kind = "dead_letter_shared_reader_queue" if name == "Dead" else "shared_reader_queue"
    return parse_resource(f"{SUBSCRIBER}/{kind}/{name}{leaf}")


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_sessions_are_processes_and_the_service_is_one(service: SeveralSessions, domain: int) -> None:
    processes = service.processes()
    assert set(processes) == {"P/S/orders + P/S/s", "P/S/quotes"}, "dead letters go with their queue"
    assert len({service.pid, *processes.values()}) == 3
    write(domain, "Orders", b"1", b"2", b"3")
    write(domain, "Quotes", b"x")
    connection = service.connection()
    administration = Administration(connection)
    data = administration.hosted()
    assert [each.queue_name for each in data.queues] == ["P/S/Dead", "P/S/Orders", "P/S/Quotes", "P/S/QuotesReply"]
    held = {each.queue_name: each.current_message_count for _, each in administration.statuses()}
    assert held == {"P/S/Dead": 0, "P/S/Orders": 3, "P/S/Quotes": 1, "P/S/QuotesReply": 0}
    assert list(held) == [each.queue_name for each in data.queues], "in the order of the configuration"
    assert [each.payload for _, each in administration.messages(queue("Orders"))] == [b"1", b"2", b"3"]
    identity = administration.messages(queue("Orders"))[1].body.identity
    assert take(domain, "Orders", 1) == [b"1"]
    administration.flush_queue(queue("Quotes"))
    assert [each.current_message_count for _, each in administration.statuses(queue("Quotes"))] == [0]
    assert administration.messages(queue("Orders"))[0].body.identity == identity
    with pytest.raises(NotFound, match="Ordres"):
        administration.queue_named("Ordres")
    with pytest.raises(Refused, match="the configuration has no replicas here"):
        administration.configuration_statuses()
    connection.close()
    port = int(re.findall(r"metrics_port=(\d+)", service.log.read_text())[-1])
    figures = lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).read().decode()  # noqa: E731
    for wanted in ('qsctl_queue_samples{queue="P/S/Orders"} 2.0', 'event="received",queue="P/S/Quotes"} 1.0'):
        assert eventually(lambda wanted=wanted: wanted in figures())  # type: ignore[misc]


def test_requests_and_replies_work_inside_a_session_s_process(service: SeveralSessions, domain: int) -> None:
    with QueueReplier("Quotes", "S", domain) as replier, QueueRequester("Quotes", "S", domain) as requester:
        replier.wait_for_queue()
        requester.wait_for_queue()
        identity = requester.send(b"bid")
        request = next(iter(replier))
        replier.reply(request, request.value.upper())
        assert requester.replies(identity) == [b"BID"]


@pytest.mark.slow
def test_what_changes_at_run_time_is_in_one_process_and_survives_a_restart(
    service: SeveralSessions, domain: int
) -> None:
    connection = service.connection()
    administration = Administration(connection)
    subscriber = parse_resource(SUBSCRIBER)
    more = SharedReaderQueueSettings("More", "More", "DDS::Octets", session="quotes", dead_letter_queue="Dead")
    administration.create_queue(subscriber, more)
    with pytest.raises(Duplicated):
        administration.create_queue(subscriber, more)
    administration.create_subscriber(
        parse_resource("/domain_participant/P"),
        SharedSubscriberSettings("T", (SessionSettings("one"), SessionSettings("two")), (
            SharedReaderQueueSettings("Left", "Left", "DDS::Octets", session="one"),
        )),
    )  # fmt: skip
    write(domain, "More", b"kept elsewhere")
    write(domain, "Left", b"too")
    write(domain, "Orders", b"kept on disk")
    assert take(domain, "More", 1) == [b"kept elsewhere"]
    administration.delete_queue(queue("Quotes"))
    connection.close()

    assert service.stop() == 0
    service.start()
    assert set(service.processes()) == {"P/S/orders + P/S/quotes + P/S/s", "P/T/one", "P/T/two"}, "More ties the two"
    connection = service.connection()
    administration = Administration(connection)
    names = ["P/S/Dead", "P/S/Orders", "P/S/More", "P/T/Left"]
    assert [each.queue_name for each in administration.hosted().queues] == names
    assert take(domain, "Orders", 1) == [b"kept on disk"]
    administration.delete_subscriber(parse_resource("/domain_participant/P/shared_subscriber/T"))
    assert [each.queue_name for _, each in administration.statuses()] == names[:3]
    connection.close()


@pytest.mark.slow
def test_a_session_that_is_killed_takes_the_service_with_it_in_order(service: SeveralSessions, domain: int) -> None:
    write(domain, "Orders", b"acknowledged")
    processes = service.processes()
    os.kill(processes["P/S/quotes"], signal.SIGKILL)
    assert service.process is not None
    assert service.process.wait(30) == 8
    log = service.log.read_text()
    assert "the process of session P/S/quotes was killed by signal 9" in log
    assert "session_left" in log, "the other left in order"
    assert not any(is_alive(pid) for pid in processes.values())
    service.start()
    assert take(domain, "Orders", 1) == [b"acknowledged"]


def test_sessions_do_not_outlive_a_coordinator_that_is_killed(service: SeveralSessions) -> None:
    processes = service.processes()
    service.stop(signal.SIGKILL)
    assert eventually(lambda: not any(is_alive(pid) for pid in processes.values()))


@pytest.mark.slow
def test_a_session_that_cannot_start_reports_the_reason(tmp_path: Path, domain: int) -> None:
    service = SeveralSessions(tmp_path, domain)
    write(domain, "Orders", b"stored")
    assert service.stop() == 0
    for stored in list(tmp_path.glob("*Orders@*")):
        stored.unlink()
        stored.mkdir()
    with pytest.raises(AssertionError, match="is not a plain file"):
        service.start()
    assert service.process is not None
    assert service.process.wait(30) == 1


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_reaches_every_process_and_all_leave_in_order(service: SeveralSessions) -> None:
    processes = service.processes()
    for pid in processes.values():
        os.kill(pid, signal.SIGINT)
    assert service.stop(signal.SIGINT) == 0
    assert service.log.read_text().count("session_left") == 2
    assert not any(is_alive(pid) for pid in processes.values())
