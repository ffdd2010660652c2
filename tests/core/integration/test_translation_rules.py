"""Routing and translation of the integration engine: details, chains, several results, errors, reroutes."""

from __future__ import annotations

import pytest

from qsctl.core.integration.dispositions import Disposition
from qsctl.core.integration.message import State
from qsctl.core.integration.messages import (
    ConnectionDelivery,
    Delete,
    ProcessStarted,
)
from qsctl.core.integration.routes import (
    DetailKind,
    ErrorControl,
    ErrorSeverity,
    RouteDetail,
    TranslationProduced,
    XpmError,
)
from qsctl.core.integration.settings import EngineSettings
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
            return iter((TranslationProduced(message.payload + b"0"), TranslationProduced(message.payload + b"1")))

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
    assert [each.thread for each in scene.sent if isinstance(each, ConnectionDelivery)] == ["a", "b"]


def failing(severity: ErrorSeverity, control: ErrorControl = ErrorControl.SKIP) -> EngineSettings:
    steps = (TranslationProduced(b"a"), XpmError(severity, "bad date"), TranslationProduced(b"b"))
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
        (ErrorSeverity.ACTION, ErrorControl.SKIP, [b"before", b"a", b"b", b"after"], []),
        (ErrorSeverity.ACTION, ErrorControl.CURDETAIL, [b"before", b"after"], [303]),
        (ErrorSeverity.ACTION, ErrorControl.ALLDETAIL, [], [303]),
        (ErrorSeverity.CURDETAIL, ErrorControl.SKIP, [b"before", b"after"], [303]),
        (ErrorSeverity.ALLDETAIL, ErrorControl.SKIP, [], [303]),
    ],
)
def test_an_xpmerror_reaches_as_far_as_its_severity(
    severity: ErrorSeverity, control: ErrorControl, delivered: list[bytes], failed: list[int]
) -> None:
    scene = Scene(failing(severity, control)).arrive("in", b"x")
    assert scene.deliveries() == delivered
    assert [each.error for each in scene.engine.database.failed()] == failed
    assert not scene.engine.database.messages()
    if failed:
        assert scene.engine.database.failed()[0].payload == b"x"


def test_alldetail_throws_the_partial_queue_away_before_the_source_fails() -> None:
    text = Scene(failing(ErrorSeverity.ALLDETAIL)).arrive("in", b"x").take_lines()
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
    assert [each.mid.number for each in scene.sent if isinstance(each, ConnectionDelivery)] == [2, 4]


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
