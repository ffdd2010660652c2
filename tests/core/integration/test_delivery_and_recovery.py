"""Delivery, replies, recovery and operators of the integration engine, as transcripts."""

from __future__ import annotations

import pytest

from qsctl.core.integration.dispositions import Disposition
from qsctl.core.integration.message import Flag, MessageType, State
from qsctl.core.integration.messages import (
    Acknowledged,
    Arrived,
    Connected,
    ConnectionDelivery,
    ConnectionLost,
    Delete,
    Inbound,
    ProcessStarted,
    ProcessStopped,
    Resend,
    ResendPlace,
    ThreadStarted,
    ThreadStopped,
)
from qsctl.core.integration.procedures import ProcedureOutput
from qsctl.core.integration.settings import EngineSettings, ProcessSettings
from qsctl.instant import INFINITE_NS
from tests.core.integration.scene import (
    Procedure,
    Scene,
    inbound,
    makes,
    one_process,
    outbound,
    raw,
    returns,
    route,
    thread,
    translate,
    without_blanks,
)


def transcript(scene: Scene, expected: str) -> None:
    assert scene.take_lines() == without_blanks(expected)


def plain(**of_inbound: object) -> EngineSettings:
    return one_process(thread("in", inbound(route(raw("out")), **of_inbound)), thread("out", outbound()))  # type: ignore[arg-type]


# Post-translation and delivery.


def two_processes(icl_delay_ns: int = 0) -> EngineSettings:
    return EngineSettings(
        (
            ProcessSettings("p", (thread("in", inbound(route(raw("out", "other")))), thread("other", outbound()))),
            ProcessSettings("q", (thread("out", outbound()),)),
        ),
        icl_delay_ns,
    )


def test_messages_for_a_stopped_thread_stay_in_sequence_and_others_go_on() -> None:
    scene = Scene(two_processes()).do(ThreadStopped("out")).arrive("in", b"1", b"2", b"3")
    assert scene.deliveries("other") == [b"1", b"2", b"3"]
    waiting = [each for each in scene.engine.database.messages() if each.state is State.POST_TRANSLATION]
    assert [each.payload for each in waiting] == [b"1", b"2", b"3"]
    assert scene.do(ThreadStarted("out")).deliveries("out") == [b"1", b"2", b"3"]


def test_a_message_whose_thread_stops_while_it_is_on_its_way_returns_to_its_place() -> None:
    scene = Scene(two_processes(icl_delay_ns=10)).arrive("in", b"1", b"2")
    scene.until(15)  # on their way to their destinations
    assert {each.state for each in scene.engine.messages()} == {State.SENT_TO_DESTINATION}
    scene.do(ThreadStopped("out")).until(30)
    assert [each.payload for each in scene.engine.messages() if each.state is State.POST_TRANSLATION] == [b"1", b"2"]
    assert scene.do(ThreadStarted("out")).until(60).deliveries("out") == [b"1", b"2"]


@pytest.mark.parametrize(
    ("ends", "begins"),
    [(ThreadStopped("out"), ThreadStarted("out")), (ProcessStopped("q"), ProcessStarted("q"))],
)
def test_what_is_sent_later_does_not_overtake_what_was_on_its_way_when_a_thread_stopped(
    ends: Inbound, begins: Inbound
) -> None:
    """Both are on their way when it stops; it runs again after the first would have arrived, before the second does."""
    scene = Scene(two_processes(icl_delay_ns=10)).arrive("in", b"1").until(4).arrive("in", b"2").until(19)
    scene.do(ends).until(22).do(begins).until(100)
    assert scene.deliveries("out") == [b"1", b"2"]


def test_a_process_that_ends_loses_what_is_in_no_database_and_nothing_else() -> None:
    settings = one_process(
        thread("logged", inbound(route(raw("out")))),
        thread("unlogged", inbound(route(raw("out")), logged=False)),
        thread("out", outbound()),
    )
    scene = Scene(settings).do(ConnectionLost("out")).arrive("logged", b"1").arrive("unlogged", b"2")
    scene.do(ProcessStopped("p", is_crash=True), Connected("out"), ProcessStarted("p"))
    assert scene.deliveries() == [b"1"]


def test_what_was_being_written_is_sent_again_as_a_possible_duplicate() -> None:
    scene = Scene(plain(), acknowledges=False).arrive("in", b"1", b"2")
    again = scene.restart()
    again.acknowledges = True
    assert [line for line in again.lines if line.startswith("<")] == ["< deliver out 1.2 1 possible duplicate"]
    mid = next(each.mid for each in again.sent if isinstance(each, ConnectionDelivery))
    again.do(Acknowledged("out", mid))
    assert [line for line in again.lines if line.startswith("<")][1:] == ["< deliver out 1.4 2"]


def test_a_refused_message_is_tried_again_and_keeps_its_place() -> None:
    settings = one_process(
        thread("in", inbound(route(raw("out")))), thread("out", outbound(retries=1, retry_interval_ns=10))
    )
    scene = Scene(settings, acknowledges=False).arrive("in", b"1", b"2")
    first = next(each.mid for each in scene.sent if isinstance(each, ConnectionDelivery))
    scene.do(Acknowledged("out", first, is_accepted=False)).until(9)
    assert scene.deliveries() == [b"1"], "not before the interval is over"
    scene.until(10)
    assert scene.deliveries() == [b"1", b"1"]
    scene.do(Acknowledged("out", first, is_accepted=False)).until(20)
    assert scene.deliveries() == [b"1", b"1", b"2"]
    assert [(each.error, each.state) for each in scene.engine.database.failed()] == [(405, State.FAILED_DELIVERY)]


def test_an_answer_for_another_message_changes_nothing() -> None:
    scene = Scene(plain(), acknowledges=False).arrive("in", b"1", b"2")
    first = next(each.mid for each in scene.sent if isinstance(each, ConnectionDelivery))
    scene.do(Acknowledged("out", first), Acknowledged("out", first))
    assert scene.deliveries() == [b"1", b"2"]
    assert len(scene.engine.messages()) == 1


# Replies.


def replying(*reply: Procedure, source_sends: bool = False, timeout_ns: int = INFINITE_NS) -> EngineSettings:
    sides = (inbound(route(raw("out"))), outbound()) if source_sends else (inbound(route(raw("out"))),)
    return one_process(
        thread("in", *sides),
        thread(
            "out",
            inbound(reply_procedures=reply),
            outbound(awaits_reply=True, reply_timeout_ns=timeout_ns, retries=1, retry_interval_ns=1),
        ),
    )


def reply_to(scene: Scene, payload: bytes = b"ack") -> Scene:
    return scene.do(Arrived("out", 99, payload, type=MessageType.REPLY))


@pytest.mark.parametrize(
    ("reply", "delivered"),
    [((), 2), ((returns(Disposition.KILLREPLY),), 2), ((returns(Disposition.KILL),), 1)],
)
def test_killreply_ends_the_wait_and_kill_does_not(reply: tuple[Procedure, ...], delivered: int) -> None:
    scene = Scene(replying(*reply)).arrive("in", b"1", b"2")
    assert scene.deliveries("out") == [b"1"]
    assert len(reply_to(scene).deliveries("out")) == delivered


def test_a_reply_that_continues_goes_to_where_its_message_came_from() -> None:
    scene = reply_to(Scene(replying(Procedure(), source_sends=True)).arrive("in", b"1"))
    assert scene.deliveries("in") == [b"ack"]


def test_a_reply_that_continues_without_a_receiver_is_error_104() -> None:
    scene = reply_to(Scene(replying(Procedure())).arrive("in", b"1"))
    assert [each.error for each in scene.engine.database.failed()] == [104]


def test_a_reply_that_does_not_come_has_the_message_sent_again_and_then_fail() -> None:
    scene = Scene(replying(timeout_ns=100)).arrive("in", b"1").until(1000)
    assert [each.is_possible_duplicate for each in scene.sent if isinstance(each, ConnectionDelivery)] == [False, True]
    assert [(each.error, each.error_text) for each in scene.engine.database.failed()] == [
        (405, "no reply arrived in time, 2 times")
    ]


# Recovery, as the seed has it.


def test_recovery_looks_for_the_inbound_message() -> None:
    settings = one_process(
        thread("in", inbound(route(translate("out", by=[makes(b"a", b"b", b"c")])))), thread("out", outbound())
    )
    scene = Scene(settings).do(ThreadStopped("out")).arrive("in", b"x")
    names = [line.split()[0:3:2] for line in scene.lines if line != "start" and line[0] not in "<!"]
    commit = names.index(["remove", "translated"]) + 2  # `start` is a record, too
    before, after = scene.restart(records=commit - 1), scene.restart(records=commit)
    assert before.take_lines().splitlines()[:5] == [
        "remove 1.2 abandoned",
        "remove 1.3 abandoned",
        "remove 1.4 abandoned",
        "move 1.1 pre-translation p_xlate",
        "move 1.1 in translation p_xlate",
    ]
    assert after.take_lines().splitlines()[:3] == [
        "move 1.2 post-translation out",
        "move 1.3 post-translation out",
        "move 1.4 post-translation out",
    ]
    assert before.deliveries() == after.deliveries() == [b"a", b"b", b"c"]


def test_recovery_fails_what_is_at_a_thread_that_is_in_another_process_now() -> None:
    scene = Scene(two_processes()).do(ConnectionLost("out")).arrive("in", b"1")
    moved = EngineSettings(
        (
            ProcessSettings(
                "p",
                (thread("in", inbound(route(raw("other")))), thread("other", outbound()), thread("out", outbound())),
            ),
            ProcessSettings("q", (thread("idle", outbound()),)),
        )
    )
    again = scene.restart(settings=moved)
    assert [each.error for each in again.engine.database.failed()] == [107]


def test_recovery_fails_what_was_for_a_thread_that_is_gone() -> None:
    scene = Scene(two_processes()).do(ThreadStopped("out")).arrive("in", b"1")
    gone = EngineSettings(
        (ProcessSettings("p", (thread("in", inbound(route(raw("other")))), thread("other", outbound()))),)
    )
    again = scene.restart(settings=gone)
    assert [each.error for each in again.engine.database.failed()] == [108]
    assert not again.engine.messages()


# Operators.


def test_a_message_is_deleted_only_after_what_has_it_in_memory_was_stopped() -> None:
    scene = Scene(two_processes()).do(ConnectionLost("out")).arrive("in", b"1", b"2")
    mid = scene.engine.messages()[0].mid
    scene.take_lines()
    transcript(
        scene.do(Delete(mid)),
        "< answer 1.2 not deleted: it is in state 11, in the memory of thread out, and would go on all the same | "
        "stop thread out (or its process q) first, then delete [0.1.2], then start it again",
    )
    transcript(
        scene.do(ThreadStopped("out"), Delete(mid), Connected("out"), ThreadStarted("out")),
        """
        remove 1.2 deleted
        < answer 1.2 deleted
        move 1.5 outbound pre-write out
        < deliver out 1.5 2
        remove 1.5 delivered
        """,
    )


def test_state_7_needs_the_whole_process_stopped() -> None:
    scene = Scene(two_processes()).do(ThreadStopped("out")).arrive("in", b"1")
    mid = scene.engine.messages()[0].mid
    scene.do(Delete(mid))
    assert "stop process p first" in scene.take_lines()
    scene.do(ProcessStopped("p"), Delete(mid), ProcessStarted("p"), ThreadStarted("out"))
    assert scene.deliveries("out") == []


def test_a_resent_message_gets_a_new_id_keeps_its_source_and_leaves_the_error_database() -> None:
    bad = Procedure(
        lambda m: (ProcedureOutput(Disposition.ERROR if not m.flags & Flag.RESENT else Disposition.CONTINUE),)
    )
    scene = Scene(plain(procedures=[bad])).arrive("in", b"x")
    failed = scene.engine.database.failed()[0]
    scene.take_lines()
    scene.do(Resend(failed.mid, ResendPlace.INBOUND_PRE_TPS))
    assert scene.deliveries() == [b"x"]
    assert not scene.engine.database.failed()
    delivery = next(each for each in scene.sent if isinstance(each, ConnectionDelivery))
    assert delivery.source_mid == failed.source_mid
    assert "store 1.2 inbound pre-TPS in x\nremove 1.1 resent" in scene.take_lines()


def test_a_message_that_was_never_routed_cannot_be_resent_outbound() -> None:
    scene = Scene(plain(procedures=[returns(Disposition.ERROR)])).arrive("in", b"x")
    mid = scene.engine.database.failed()[0].mid
    scene.take_lines()
    scene.do(Resend(mid, ResendPlace.OUTBOUND_POST_TPS))
    assert scene.take_lines() == (
        "< answer 1.1 message [0.1.1] has no destination: it failed before it was routed | "
        "Send it again to ib_pre_tps or ib_post_tps."
    )
    assert scene.engine.database.failed()


def test_a_stopped_inbound_thread_refuses_and_the_message_stays_its_senders() -> None:
    scene = Scene(plain()).do(ThreadStopped("in"))
    scene.take_lines()
    transcript(scene.arrive("in", b"x"), "< refused in 1")
