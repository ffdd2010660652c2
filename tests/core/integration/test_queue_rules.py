"""Each queue's rule of seed 001, as a transcript: what is written, in which order, and what leaves when."""

from __future__ import annotations

import pytest

from qsctl.core.integration.dispositions import ALLOWED, Context, Disposition
from qsctl.core.integration.message import Flag, MessageType, State
from qsctl.core.integration.messages import (
    Acknowledged,
    Arrived,
    Connected,
    ConnectionLost,
    Delete,
    Delivery,
    ProcessStarted,
    ProcessStopped,
    Resend,
    ResendPlace,
    ThreadStarted,
    ThreadStopped,
)
from qsctl.core.integration.procedures import Mode, Output, ProcedureFailed
from qsctl.core.integration.routes import DetailKind, ErrorControl, Produced, RouteDetail, Severity, XpmError
from qsctl.core.integration.settings import EngineSettings, ProcessSettings
from qsctl.instant import INFINITE_NS
from tests.core.integration.scene import (
    CONTINUE,
    Procedure,
    Scene,
    Translation,
    inbound,
    makes,
    one_process,
    outbound,
    raw,
    returns,
    route,
    splits,
    thread,
    translate,
    without_blanks,
)


def transcript(scene: Scene, expected: str) -> None:
    assert scene.take_lines() == without_blanks(expected)


def plain(**of_inbound: object) -> EngineSettings:
    return one_process(thread("in", inbound(route(raw("out")), **of_inbound)), thread("out", outbound()))  # type: ignore[arg-type]


def test_every_stage_is_a_record_and_the_sender_is_answered_after_the_copy() -> None:
    transcript(
        Scene(plain(procedures=[Procedure()])).arrive("in", b"x"),
        """
        store 1.1 inbound pre-TPS in x
        move 1.1 inbound post-TPS in
        move 1.1 sent by ICL to translation in
        move 1.1 pre-translation p_xlate
        move 1.1 in translation p_xlate
        store 1.2 partial p_xlate x
        remove 1.1 translated
        move 1.2 post-translation out
        move 1.2 sent by ICL to destination out
        move 1.2 outbound post-TPS out
        move 1.2 outbound pre-write out
        < accepted in 1
        < deliver out 1.2 x
        remove 1.2 delivered
        """,
    )


def test_pre_tps_queues_are_skipped_without_procedures() -> None:
    scene = Scene(plain()).arrive("in", b"x")
    text = scene.take_lines()
    assert "pre-TPS" not in text
    with_both = one_process(
        thread("in", inbound(route(raw("out")), procedures=[Procedure()])), thread("out", outbound(Procedure()))
    )
    text = Scene(with_both).arrive("in", b"x").take_lines()
    assert "inbound pre-TPS" in text and "outbound pre-TPS" in text


def test_without_logging_nothing_is_written() -> None:
    transcript(
        Scene(plain(logged=False)).arrive("in", b"x"),
        """
        < accepted in 1
        < deliver out 1.2 x
        """,
    )


def test_a_message_that_a_procedure_marks_is_backed_from_there_on() -> None:
    marks = Procedure(lambda _: (CONTINUE._replace(is_recoverable=True),))
    first = Scene(plain(logged=False, procedures=[marks])).arrive("in", b"x").take_lines().splitlines()[0]
    assert first == "store 1.1 inbound post-TPS in x"


def test_several_results_of_a_procedure_count_once_their_message_is_gone() -> None:
    settings = one_process(
        thread("in", inbound(route(raw("out")), procedures=[splits(b"a", b"b")])), thread("out", outbound())
    )
    scene = Scene(settings).arrive("in", b"x")
    lines = scene.take_lines().splitlines()
    assert lines[:4] == [
        "store 1.1 inbound pre-TPS in x",
        "store 1.2 inbound post-TPS in a",
        "store 1.3 inbound post-TPS in b",
        "remove 1.1 replaced",
    ]
    assert scene.deliveries() == [b"a", b"b"]
    # Interrupted before the last of them: the message as it was; after it: both.
    for records, expected in ((3, [b"a", b"b"]), (4, [b"a", b"b"]), (5, [b"a", b"b"])):
        again = scene.restart(records=records)
        assert again.deliveries() == expected, records


def test_a_procedure_that_changes_the_content_keeps_the_id() -> None:
    changes = Procedure(lambda _: (CONTINUE._replace(payload=b"y"),))
    scene = Scene(plain(procedures=[changes])).arrive("in", b"x")
    assert scene.take_lines().splitlines()[:3] == [
        "store 1.1 inbound pre-TPS in x",
        "store 1.1 inbound post-TPS in y",
        "remove 1.1 replaced",
    ]
    assert [scene.restart(records=count).deliveries() for count in (2, 3, 4)] == [[b"y"], [b"y"], [b"y"]]


def test_a_stack_gives_each_result_to_the_next_procedure() -> None:
    upper = Procedure(lambda message: (CONTINUE._replace(payload=message.payload.upper()),))
    scene = Scene(plain(procedures=[splits(b"a", b"b"), upper])).arrive("in", b"x")
    assert scene.deliveries() == [b"A", b"B"]


def test_a_procedure_that_breaks_off_sends_its_message_to_the_error_database() -> None:
    def fails(_: object) -> tuple[Output, ...]:
        raise ProcedureFailed("no segment PID")

    scene = Scene(plain(procedures=[Procedure(fails)])).arrive("in", b"x")
    assert "fail 1.1 201 no segment PID" in scene.take_lines()
    assert [each.error_text for each in scene.engine.database.failed()] == ["no segment PID"]
    assert not scene.engine.messages()


def test_a_procedure_that_returns_nothing_is_an_error_not_a_leak() -> None:
    scene = Scene(plain(procedures=[Procedure(lambda _: ())])).arrive("in", b"x")
    assert [each.error for each in scene.engine.database.failed()] == [201]


def test_a_looping_procedure_holds_its_thread_until_its_process_ends() -> None:
    loops = Procedure(duration_ns=INFINITE_NS)
    scene = Scene(plain(procedures=[loops])).arrive("in", b"x", b"y")
    assert scene.engine.next_deadline() is None
    assert scene.deliveries() == []
    scene.do(ProcessStopped("p", is_crash=True))
    assert [(each.mid.number, each.state) for each in scene.engine.database.messages()] == [
        (1, State.INBOUND_PRE_TPS),
        (2, State.INBOUND_PRE_TPS),
    ]


def both_ways(*procedures: Procedure, reply: tuple[Procedure, ...] = ()) -> EngineSettings:
    return one_process(
        thread("a", inbound(route(raw("out")), procedures=procedures, reply_procedures=reply), outbound()),
        thread("out", outbound()),
    )


DESTINATIONS = {
    Disposition.CONTINUE: ["out"],
    Disposition.SEND: ["out"],
    Disposition.KILL: [],
    Disposition.OVER: ["a"],
    Disposition.PROTO: ["a"],
    Disposition.ERROR: [],
    Disposition.KILLREPLY: [],
    Disposition.REROUTE: [],
}


@pytest.mark.parametrize("disposition", DESTINATIONS)
def test_dispositions_of_an_inbound_procedure(disposition: Disposition) -> None:
    scene = Scene(both_ways(returns(disposition, destination="out"))).arrive("a", b"x")
    assert [each.thread for each in scene.sent if isinstance(each, Delivery)] == DESTINATIONS[disposition]
    is_allowed = disposition in ALLOWED[Context.INBOUND_DATA] and disposition is not Disposition.ERROR
    assert [each.error for each in scene.engine.database.failed()] == ([] if is_allowed else [201])
    assert not scene.engine.messages()


def test_send_goes_past_translation() -> None:
    scene = Scene(both_ways(returns(Disposition.SEND, destination="out"))).arrive("a", b"x")
    text = scene.take_lines()
    assert "translation p_xlate" not in text and "partial" not in text
    assert "move 1.1 post-translation out" in text


@pytest.mark.parametrize(("destination", "error"), [("", 105), ("nowhere", 108), ("deaf", 108)])
def test_send_to_nobody_is_an_error(destination: str, error: int) -> None:
    settings = one_process(
        thread("in", inbound(route(raw("out")), procedures=[returns(Disposition.SEND, destination=destination)])),
        thread("deaf", inbound(route(raw("out")))),
        thread("out", outbound()),
    )
    assert [each.error for each in Scene(settings).arrive("in", b"x").engine.database.failed()] == [error]


def test_over_from_outbound_goes_to_the_inbound_pre_tps_queue_and_a_circle_ends() -> None:
    circle = one_process(
        thread(
            "a", inbound(route(raw("a")), procedures=[returns(Disposition.OVER)]), outbound(returns(Disposition.OVER))
        )
    )
    scene = Scene(circle).arrive("a", b"x")
    text = scene.take_lines()
    assert "move 1.1 outbound pre-TPS a" in text and "move 1.1 inbound pre-TPS a" in text
    assert [(each.error, each.turns) for each in scene.engine.database.failed()] == [(201, 20)]


def test_proto_goes_to_the_head_whatever_waits() -> None:
    proto = Procedure(lambda m: (Output(Disposition.PROTO if m.payload == b"first" else Disposition.CONTINUE),))
    settings = one_process(
        thread("in", inbound(route(raw("a")), priority=9000)),
        thread("a", inbound(route(raw("a")), procedures=[proto]), outbound()),
    )
    scene = Scene(settings).do(ConnectionLost("a")).arrive("in", b"1", b"2").arrive("a", b"first").do(Connected("a"))
    assert scene.deliveries() == [b"first", b"1", b"2"]


def test_retry_runs_again_after_a_while_and_keeps_its_place() -> None:
    seen: list[int] = []

    def until_third(message: object) -> tuple[Output, ...]:
        seen.append(message.attempts)  # type: ignore[attr-defined]
        again = message.payload == b"a" and message.attempts < 2  # type: ignore[attr-defined]
        return (Output(Disposition.RETRY if again else Disposition.CONTINUE),)

    settings = one_process(
        thread("in", inbound(route(raw("out")), procedures=[Procedure(until_third)]), tps_retry_interval_ns=10),
        thread("out", outbound()),
    )
    scene = Scene(settings).arrive("in", b"a", b"b")
    assert scene.deliveries() == []
    assert scene.until(100).deliveries() == [b"a", b"b"]
    assert seen == [0, 1, 2, 0]


def test_retry_without_end_fails() -> None:
    settings = one_process(
        thread(
            "in",
            inbound(route(raw("out")), procedures=[returns(Disposition.RETRY)]),
            tps_retries=2,
            tps_retry_interval_ns=10,
        ),
        thread("out", outbound()),
    )
    failed = Scene(settings).arrive("in", b"a").until(1000).engine.database.failed()
    assert [(each.error, each.error_text) for each in failed] == [(405, "RETRY after 3 runs")]


def test_procedures_run_in_modes_start_run_time_and_shutdown() -> None:
    procedure = Procedure()
    settings = one_process(
        thread("in", inbound(route(raw("out")), procedures=[procedure]), interval_ns=50), thread("out", outbound())
    )
    Scene(settings).arrive("in", b"x").until(120).do(ThreadStopped("in")).until(500)
    assert [mode for mode, _ in procedure.modes] == [Mode.START, Mode.RUN, Mode.TIME, Mode.TIME, Mode.SHUTDOWN]


# Priorities.


def test_a_higher_priority_goes_first_and_inside_a_priority_the_oldest() -> None:
    scene = Scene(plain()).do(ConnectionLost("out"))
    for payload, priority in ((b"1", 5120), (b"2", 6000), (b"3", 5120), (b"4", 6000)):
        scene.arrive("in", payload, priority=priority)
    assert scene.do(Connected("out")).deliveries() == [b"2", b"4", b"1", b"3"]


# Translation.


def test_results_wait_in_the_partial_queue_until_every_route_detail_is_done() -> None:
    settings = one_process(
        thread("in", inbound(route(translate("out", by=[makes(b"a", b"b", takes_ns=5)]), raw("out2")))),
        thread("out", outbound()),
        thread("out2", outbound()),
    )
    scene = Scene(settings).arrive("in", b"x")
    scene.take_lines()
    transcript(scene.until(9), "")
    lines = scene.until(10).take_lines().splitlines()
    assert lines[:7] == [
        "store 1.2 partial p_xlate a",
        "store 1.3 partial p_xlate b",
        "store 1.4 partial p_xlate x",
        "remove 1.1 translated",
        "move 1.2 post-translation out",
        "move 1.3 post-translation out",
        "move 1.4 post-translation out2",
    ]


def test_a_chain_gives_each_result_to_the_next_translation() -> None:
    class Doubles(Translation):
        def run(self, message):  # type: ignore[no-untyped-def, override]
            return iter((Produced(message.payload + b"0"), Produced(message.payload + b"1")))

    settings = one_process(
        thread("in", inbound(route(translate("out", by=[makes(b"a", b"b"), Doubles(())])))), thread("out", outbound())
    )
    assert Scene(settings).arrive("in", b"x").deliveries() == [b"a0", b"a1", b"b0", b"b1"]


def test_pre_procedures_make_several_messages_each_is_translated_and_post_processed() -> None:
    post = Procedure(lambda message: (CONTINUE._replace(payload=message.payload + b"!"),))
    settings = one_process(
        thread("in", inbound(route(translate("out", by=[makes(b"t")], pre=[splits(b"a", b"b")], post=[post])))),
        thread("out", outbound()),
    )
    assert Scene(settings).arrive("in", b"x").deliveries() == [b"t!", b"t!"]


def test_a_generate_detail_makes_messages_of_its_own() -> None:
    detail = RouteDetail(("out",), DetailKind.GENERATE, (splits(b"g1", b"g2"),))
    settings = one_process(thread("in", inbound(route(detail))), thread("out", outbound()))
    assert Scene(settings).arrive("in", b"x").deliveries() == [b"g1", b"g2"]


def test_one_result_goes_to_every_destination() -> None:
    settings = one_process(
        thread("in", inbound(route(raw("a", "b")))), thread("a", outbound()), thread("b", outbound())
    )
    scene = Scene(settings).arrive("in", b"x")
    assert [each.thread for each in scene.sent if isinstance(each, Delivery)] == ["a", "b"]


def failing(severity: Severity, control: ErrorControl = ErrorControl.SKIP) -> EngineSettings:
    steps = (Produced(b"a"), XpmError(severity, "bad date"), Produced(b"b"))
    return one_process(
        thread(
            "in",
            inbound(
                route(
                    translate("out", by=[makes(b"before")]),
                    translate("out", by=[Translation(steps, control)]),
                    translate("out", by=[makes(b"after")]),
                )
            ),
        ),
        thread("out", outbound()),
    )


@pytest.mark.parametrize(
    ("severity", "control", "delivered", "failed"),
    [
        (Severity.ACTION, ErrorControl.SKIP, [b"before", b"a", b"b", b"after"], []),
        (Severity.ACTION, ErrorControl.CURDETAIL, [b"before", b"after"], [303]),
        (Severity.ACTION, ErrorControl.ALLDETAIL, [], [303]),
        (Severity.CURDETAIL, ErrorControl.SKIP, [b"before", b"after"], [303]),
        (Severity.ALLDETAIL, ErrorControl.SKIP, [], [303]),
    ],
)
def test_an_xpmerror_reaches_as_far_as_its_severity(
    severity: Severity, control: ErrorControl, delivered: list[bytes], failed: list[int]
) -> None:
    scene = Scene(failing(severity, control)).arrive("in", b"x")
    assert scene.deliveries() == delivered
    assert [each.error for each in scene.engine.database.failed()] == failed
    assert not scene.engine.database.messages()
    if failed:
        assert scene.engine.database.failed()[0].payload == b"x"


def test_alldetail_throws_the_partial_queue_away_before_the_source_fails() -> None:
    text = Scene(failing(Severity.ALLDETAIL)).arrive("in", b"x").take_lines()
    assert (
        without_blanks(
            """
        store 1.2 partial p_xlate before
        remove 1.2 abandoned
        fail 1.1 303 translation: bad date
        """
        )
        in text
    )


def test_over_and_proto_in_a_route_detail_end_the_process_and_the_message_stays() -> None:
    for disposition in (Disposition.OVER, Disposition.PROTO):
        settings = one_process(
            thread("in", inbound(route(raw("out", pre=[returns(disposition)])))), thread("out", outbound())
        )
        scene = Scene(settings).arrive("in", b"x")
        assert f"! process p: {disposition} in a route detail of message [0.1.1]" in scene.take_lines()
        assert not scene.engine.is_running("p")
        assert [each.state for each in scene.engine.database.messages()] == [State.IN_TRANSLATION]
        scene.do(ProcessStarted("p"))
        assert not scene.engine.is_running("p"), "the same message ends it again"
        scene.do(Delete(scene.engine.database.messages()[0].mid), ProcessStarted("p"))
        assert scene.engine.is_running("p")


@pytest.mark.parametrize("disposition", [Disposition.KILLREPLY, Disposition.RETRY, Disposition.ERROR])
def test_what_a_route_detail_may_not_return_fails_all_details(disposition: Disposition) -> None:
    settings = one_process(
        thread("in", inbound(route(raw("out"), raw("out", pre=[returns(disposition)])))), thread("out", outbound())
    )
    scene = Scene(settings).arrive("in", b"x")
    assert scene.deliveries() == []
    assert [each.error for each in scene.engine.database.failed()] == [302]


def test_reroute_goes_to_the_head_of_the_pre_translation_queue_as_if_newly_come() -> None:
    to_b = returns(Disposition.REROUTE, transaction_id="B")
    settings = one_process(
        thread(
            "in",
            inbound(
                route(raw("out"), raw(pre=[to_b]), transaction="A"),
                route(translate("out", by=[makes(b"again")]), transaction="B"),
            ),
        ),
        thread("out", outbound()),
    )
    scene = Scene(settings).arrive("in", b"x", transaction_id="A")
    assert scene.deliveries() == [b"x", b"again"]
    text = scene.take_lines()
    assert "store 1.3 partial p_xlate x" in text and "move 1.3 pre-translation p_xlate" in text
    assert [each.mid.number for each in scene.sent if isinstance(each, Delivery)] == [2, 4]


def test_a_circle_of_reroutes_ends_in_the_error_database() -> None:
    again = returns(Disposition.REROUTE, transaction_id="A")
    settings = one_process(thread("in", inbound(route(raw(pre=[again]), transaction="A"))), thread("out", outbound()))
    scene = Scene(settings).arrive("in", b"x", transaction_id="A")
    assert [each.error for each in scene.engine.database.failed()] == [1001]


@pytest.mark.parametrize(("transaction", "error"), [("", 100), ("A99", 101)])
def test_messages_without_a_route_fail(transaction: str, error: int) -> None:
    settings = one_process(
        thread("in", inbound(route(raw("out"), transaction="A01"), transaction_id_of=lambda _: transaction)),
        thread("out", outbound()),
    )
    assert [each.error for each in Scene(settings).arrive("in", b"x").engine.database.failed()] == [error]


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
    mid = next(each.mid for each in again.sent if isinstance(each, Delivery))
    again.do(Acknowledged("out", mid))
    assert [line for line in again.lines if line.startswith("<")][1:] == ["< deliver out 1.4 2"]


def test_a_refused_message_is_tried_again_and_keeps_its_place() -> None:
    settings = one_process(
        thread("in", inbound(route(raw("out")))), thread("out", outbound(retries=1, retry_interval_ns=10))
    )
    scene = Scene(settings, acknowledges=False).arrive("in", b"1", b"2")
    first = next(each.mid for each in scene.sent if isinstance(each, Delivery))
    scene.do(Acknowledged("out", first, is_accepted=False)).until(10)
    assert scene.deliveries() == [b"1", b"1"]
    scene.do(Acknowledged("out", first, is_accepted=False)).until(20)
    assert scene.deliveries() == [b"1", b"1", b"2"]
    assert [(each.error, each.state) for each in scene.engine.database.failed()] == [(405, State.FAILED_DELIVERY)]


def test_an_answer_for_another_message_changes_nothing() -> None:
    scene = Scene(plain(), acknowledges=False).arrive("in", b"1", b"2")
    first = next(each.mid for each in scene.sent if isinstance(each, Delivery))
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


def test_a_reply_that_continues_to_nobody_is_error_104() -> None:
    scene = reply_to(Scene(replying(Procedure())).arrive("in", b"1"))
    assert [each.error for each in scene.engine.database.failed()] == [104]


def test_a_reply_that_does_not_come_has_the_message_sent_again_and_then_fail() -> None:
    scene = Scene(replying(timeout_ns=100)).arrive("in", b"1").until(1000)
    assert [each.is_possible_duplicate for each in scene.sent if isinstance(each, Delivery)] == [False, True]
    assert [(each.error, each.error_text) for each in scene.engine.database.failed()] == [
        (405, "no reply came in time, 2 times")
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
    bad = Procedure(lambda m: (Output(Disposition.ERROR if not m.flags & Flag.RESENT else Disposition.CONTINUE),))
    scene = Scene(plain(procedures=[bad])).arrive("in", b"x")
    failed = scene.engine.database.failed()[0]
    scene.take_lines()
    scene.do(Resend(failed.mid, ResendPlace.INBOUND_PRE_TPS))
    assert scene.deliveries() == [b"x"]
    assert not scene.engine.database.failed()
    delivery = next(each for each in scene.sent if isinstance(each, Delivery))
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
