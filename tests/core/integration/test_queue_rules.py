"""Each queue's rule of [CLOVERLEAF], as a transcript: what is written, in which order, and what leaves when."""

from __future__ import annotations

import pytest

from qsctl.core.integration.dispositions import ALLOWED, Disposition, ProcedureContext
from qsctl.core.integration.message import State
from qsctl.core.integration.messages import (
    Connected,
    ConnectionDelivery,
    ConnectionLost,
    ProcessStopped,
    ThreadStopped,
)
from qsctl.core.integration.procedures import ProcedureFailed, ProcedureMode, ProcedureOutput
from qsctl.core.integration.settings import EngineSettings
from qsctl.instant import INFINITE_NS
from tests.core.integration.scene import (
    CONTINUE,
    Procedure,
    Scene,
    inbound,
    one_process,
    outbound,
    raw,
    returns,
    route,
    splits,
    thread,
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
    def fails(_: object) -> tuple[ProcedureOutput, ...]:
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
    assert [each.thread for each in scene.sent if isinstance(each, ConnectionDelivery)] == DESTINATIONS[disposition]
    is_allowed = disposition in ALLOWED[ProcedureContext.INBOUND_DATA] and disposition is not Disposition.ERROR
    assert [each.error for each in scene.engine.database.failed()] == ([] if is_allowed else [201])
    assert not scene.engine.messages()


def test_send_goes_past_translation() -> None:
    scene = Scene(both_ways(returns(Disposition.SEND, destination="out"))).arrive("a", b"x")
    text = scene.take_lines()
    assert "translation p_xlate" not in text and "partial" not in text
    assert "move 1.1 post-translation out" in text


@pytest.mark.parametrize(("destination", "error"), [("", 105), ("nowhere", 108), ("deaf", 108)])
def test_send_without_a_receiver_is_an_error(destination: str, error: int) -> None:
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
    proto = Procedure(
        lambda m: (ProcedureOutput(Disposition.PROTO if m.payload == b"first" else Disposition.CONTINUE),)
    )
    settings = one_process(
        thread("in", inbound(route(raw("a")), priority=9000)),
        thread("a", inbound(route(raw("a")), procedures=[proto]), outbound()),
    )
    scene = Scene(settings).do(ConnectionLost("a")).arrive("in", b"1", b"2").arrive("a", b"first").do(Connected("a"))
    assert scene.deliveries() == [b"first", b"1", b"2"]


def test_retry_runs_again_after_a_while_and_keeps_its_place() -> None:
    seen: list[int] = []

    def until_third(message: object) -> tuple[ProcedureOutput, ...]:
        seen.append(message.attempts)  # type: ignore[attr-defined]
        again = message.payload == b"a" and message.attempts < 2  # type: ignore[attr-defined]
        return (ProcedureOutput(Disposition.RETRY if again else Disposition.CONTINUE),)

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
    assert [mode for mode, _ in procedure.modes] == [
        ProcedureMode.START,
        ProcedureMode.RUN,
        ProcedureMode.TIME,
        ProcedureMode.TIME,
        ProcedureMode.SHUTDOWN,
    ]


# Priorities.


def test_a_higher_priority_goes_first_and_inside_a_priority_the_oldest() -> None:
    scene = Scene(plain()).do(ConnectionLost("out"))
    for payload, priority in ((b"1", 5120), (b"2", 6000), (b"3", 5120), (b"4", 6000)):
        scene.arrive("in", payload, priority=priority)
    assert scene.do(Connected("out")).deliveries() == [b"2", b"4", b"1", b"3"]
