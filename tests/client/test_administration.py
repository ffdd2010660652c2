"""Administration over a connection: which reply is which error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import pytest

from qsctl.client.administration import Administration, AlreadyExists, Duplicated
from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    GetData,
    GetMessages,
    GetStatus,
    Shutdown,
)
from qsctl.core.admin.reply import (
    Body,
    ConfigurationText,
    MessageData,
    MessageStatus,
    QueueData,
    Reply,
    ReturnCode,
    ServiceData,
)
from qsctl.core.messages import CommandReply, Delivery, Write, WriteAcknowledgment
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.core.statistics._counters import QueueStatistics
from qsctl.core.statistics.status import CurrentCounts
from qsctl.errors import ExitStatus, NoAnswer, NotFound, QsctlError, Refused, UsageError
from qsctl.identity import NIL_IDENTITY
from qsctl.resource import parse_resource

P = parse_resource("/domain_participant/P")
S = parse_resource(f"{P}/shared_subscriber/S")
Q = parse_resource(f"{S}/shared_reader_queue/Q")
QUEUE = QueueData("P/S/Q", "T", str(Q))
SETTINGS = SharedReaderQueueSettings("Q", "T")
STATUS = QueueStatistics(SETTINGS, 0).status(0, "P/S/Q", CurrentCounts(0, 0, 0, 0))
MESSAGE = MessageData("P/S/Q", 1, MessageStatus.SENT, NIL_IDENTITY, b"x", 1, 0, 0, False)


class Scripted:
    """A connection that answers as told and keeps what it was asked."""

    def __init__(self, *replies: Reply, names: Sequence[str] = ()) -> None:
        self.replies = [
            CommandReply(NIL_IDENTITY, name, reply) for reply, name in zip_longest(replies, names, fillvalue="One")
        ]
        self.asked: list[tuple[Command, str]] = []

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        self.asked.append((command, target))
        return self.replies

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        raise AssertionError("administration writes no samples")

    def receive(self, queue: str, max_samples: int, timeout_s: float) -> list[Delivery]:
        raise AssertionError("administration consumes nothing")

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        raise AssertionError("administration consumes nothing")


def ok(body: Body | None = None) -> Reply:
    return Reply(ReturnCode.OK, "done", body)


@pytest.mark.parametrize(
    ("reply", "kind", "status", "message"),
    [
        (Reply(ReturnCode.DUPLICATED, "there"), Duplicated, ExitStatus.DUPLICATED, "DUPLICATED: there"),
        (Reply(ReturnCode.ALREADY_EXISTS, "other"), AlreadyExists, ExitStatus.ALREADY_EXISTS, "ALREADY_EXISTS: other"),
        (Reply(ReturnCode.ERROR, "no"), Refused, ExitStatus.REFUSED, "ERROR: no"),
        (Reply(ReturnCode.ERROR, "where", not_found=True), NotFound, ExitStatus.NOT_FOUND, "ERROR: where"),
        (Reply(ReturnCode.UNSUPPORTED, "library"), Refused, ExitStatus.REFUSED, "UNSUPPORTED: library"),
    ],
)
def test_a_return_code_other_than_ok_is_an_error_with_its_exit_status(
    reply: Reply, kind: type[QsctlError], status: ExitStatus, message: str
) -> None:
    with pytest.raises(kind) as caught:
        Administration(Scripted(reply)).delete_queue(Q)
    assert (caught.value.message, caught.value.exit_status) == (message, status)


def test_the_first_bad_reply_of_several_counts() -> None:
    with pytest.raises(Refused):
        Administration(Scripted(ok(), Reply(ReturnCode.ERROR, "no"), ok())).delete_queue(Q)


def test_flush_of_a_replicated_queue_is_done_where_its_master_did_it() -> None:
    slave = Reply(ReturnCode.ERROR, "not the master", not_master=True)
    names = ("A", "B", "C")
    (done,) = Administration(Scripted(slave, ok(), slave, names=names)).flush_queue(Q)
    assert (done.replying_service, done.reply) == ("B", ok())
    with pytest.raises(Refused, match="A: ERROR: not the master\nB: ERROR: not the master"):
        Administration(Scripted(slave, slave, names=names[:2])).flush_queue(Q)
    with pytest.raises(Refused, match="A: ERROR: not the master\nB: ERROR: full\nC: OK: done"):
        Administration(Scripted(slave, Reply(ReturnCode.ERROR, "full"), ok(), names=names)).flush_queue(Q)


def test_silence_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match="no service named 'X\\*' answered"):
        Administration(Scripted(), "X*").statuses()


def test_a_target_that_the_wire_cannot_carry_is_refused() -> None:
    with pytest.raises(UsageError):
        Administration(Scripted(), "x" * 256)


def test_every_call_sends_its_command_to_the_target() -> None:
    connection = Scripted(ok())
    administration = Administration(connection, "here")
    settings = SharedSubscriberSettings("S")
    administration.create_queue(S, SETTINGS)
    administration.create_subscriber(P, settings)
    administration.delete_queue(Q)
    administration.delete_subscriber(S)
    administration.flush_queue(Q, "1 = 1")
    administration.shut_down()
    administration.statuses()
    administration.statuses(Q)
    administration.messages(Q, "1 = 2")
    assert connection.asked == [
        (command, "here")
        for command in (
            CreateQueue(S, SETTINGS),
            CreateSubscriber(P, settings),
            DeleteQueue(Q),
            DeleteSubscriber(S),
            FlushQueue(parse_resource(f"{Q}/message"), "1 = 1"),
            Shutdown(),
            GetStatus(parse_resource("/status")),
            GetStatus(parse_resource(f"{Q}/status")),
            GetMessages(parse_resource(f"{Q}/message"), "1 = 2"),
        )
    ]


def test_bodies_come_back_and_an_empty_reply_is_no_body() -> None:
    assert Administration(Scripted(ok(STATUS), ok(STATUS), names=("A", "B"))).statuses() == [
        ("A", STATUS),
        ("B", STATUS),
    ]
    assert Administration(Scripted(ok())).statuses() == []
    assert Administration(Scripted(ok(MESSAGE))).messages(Q) == [("One", MESSAGE)]
    assert Administration(Scripted(ok(QUEUE))).queue_data(Q) == [("One", QUEUE)]


def test_members_of_a_configuration_are_those_of_the_services_that_report_them() -> None:
    not_replicated = Reply(ReturnCode.ERROR, "the configuration has no replicas here")
    earlier = ok(ConfigurationText("<dds/>"))
    connection = Scripted(not_replicated, ok(STATUS), earlier, names=("A", "B", "C"))
    assert Administration(connection).configuration_statuses() == [("B", STATUS)]
    assert connection.asked == [(GetStatus(None), "*")]
    with pytest.raises(Refused, match="ERROR: the configuration has no replicas here"):
        Administration(Scripted(not_replicated)).configuration_statuses()
    with pytest.raises(Refused, match="B, C: the members of a configuration are not reported by a service of an"):
        Administration(Scripted(earlier, earlier, names=("B", "C"))).configuration_statuses()


def test_service_that_does_not_know_stale_reads_ends_a_reading_in_parts_all_the_same() -> None:
    administration = Administration(Scripted(ok(MESSAGE)))
    assert administration.messages(Q, after_position=0, allows_stale=True) == [("One", MESSAGE)]
    assert Administration(Scripted(ok(MESSAGE))).messages(Q, after_position=1, allows_stale=True) == []


def test_the_data_of_several_services_is_one() -> None:
    other = QueueData("P/S/Other", "T", f"{S}/shared_reader_queue/Other")
    one, two = ServiceData((QUEUE,), (str(P),), (str(S),)), ServiceData((QUEUE, other), (str(P),), (str(S),))
    administration = Administration(Scripted(ok(one), ok(two), names=("A", "B")))
    assert administration.service_data() == [("A", one), ("B", two)]
    assert administration.hosted() == two
    assert administration.queue_named("Q") == Q, "what replicas share is there once"


NONE_HERE = Reply(ReturnCode.ERROR, "there is none", not_found=True)


def test_get_finds_what_one_of_several_services_has_and_raises_not_found_otherwise() -> None:
    assert Administration(Scripted(NONE_HERE, ok(QUEUE), names=("A", "B"))).queue_data(Q) == [("B", QUEUE)]
    with pytest.raises(NotFound, match=r"A: ERROR: there is none\nB: ERROR: there is none"):
        Administration(Scripted(NONE_HERE, NONE_HERE, names=("A", "B"))).queue_data(Q)


def test_the_error_of_one_of_several_services_reports_the_others_results() -> None:
    with pytest.raises(Refused) as caught:
        Administration(Scripted(ok(), Reply(ReturnCode.UNSUPPORTED, "daemon"), names=("A", "B"))).shut_down()
    assert str(caught.value) == "A: OK: done\nB: UNSUPPORTED: daemon"


def test_idempotent_takes_what_is_so_already_and_nothing_else() -> None:
    there, other = Reply(ReturnCode.DUPLICATED, "there"), Reply(ReturnCode.ALREADY_EXISTS, "other")
    assert len(Administration(Scripted(ok(), there)).create_queue(S, SETTINGS, idempotent=True)) == 2
    assert len(Administration(Scripted(ok(), NONE_HERE)).delete_queue(Q, idempotent=True)) == 2
    with pytest.raises(AlreadyExists):
        Administration(Scripted(other)).create_queue(S, SETTINGS, idempotent=True)
    with pytest.raises(NotFound):
        Administration(Scripted(NONE_HERE)).create_queue(S, SETTINGS, idempotent=True)


def test_short_names_ask_the_service_and_full_ones_do_not() -> None:
    connection = Scripted(ok(ServiceData((QUEUE,), (str(P),), (str(S),))))
    administration = Administration(connection)
    assert administration.queue_named("Q") == Q
    assert administration.subscriber_named("") == S
    assert administration.participant_named("P") == P
    assert connection.asked == [(GetData(parse_resource("/data")), "*")] * 3
    silent = Administration(Scripted())
    assert silent.queue_named(str(Q)) == Q
    assert silent.subscriber_named(str(S)) == S
    assert silent.participant_named(str(P)) == P
