"""A broker by SEMP: pages, what only SEMP v1 has, changes of profiles; and servers that answer anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.broker.access import Credentials, Secret, parse_address
from qsctl.broker.client import Bounds, HttpClient
from qsctl.broker.semp import SempBroker
from qsctl.errors import InvalidInput, NotFound, QsctlError, Refused
from qsctl.profiles.listings.model import PRIORITY_QUEUES, ClientConnection, ClientQueues, ListedQueueStatistics
from tests import broker_server as b
from tests.example_counts import examples
from tests.patience import PATIENCE_S

QUICK = Bounds(attempt_s=PATIENCE_S, request_s=4 * PATIENCE_S, requests_per_second=1e6)
VPN = "m/k#ü%"
"""A name that has to be quoted in a path."""


def client_queues(name: str) -> ClientQueues:
    queues = tuple(ListedQueueStatistics(each, 1, 2, 3, 100, 5, 6) for each in PRIORITY_QUEUES)
    return ClientQueues(name, message_vpn="default", client_profile="web", slow_subscriber=False, queues=queues)


@pytest.fixture(scope="module")
def server() -> Iterator[b.BrokerServer]:
    with b.serving() as opened:
        yield opened


@pytest.fixture
def state(server: b.BrokerServer) -> b.BrokerState:
    server.state = b.BrokerState()
    server.faults.clear()
    server.always = None
    server.requests.clear()
    server.bodies.clear()
    return server.state


OPENED: list[HttpClient] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def broker(server: b.BrokerServer, vpn: str = "") -> SempBroker:
    credentials = Credentials(b.USERNAME, Secret(b.PASSWORD))
    OPENED.append(HttpClient(parse_address(server.url), credentials, bounds=QUICK, sleep=lambda _: None))
    return SempBroker(OPENED[-1], vpn)


def test_every_page_of_every_message_vpn_is_read(server: b.BrokerServer, state: b.BrokerState) -> None:
    state.vpns = {
        "default": {"clients": [b.client_object(f"c{n}", dataTxMsgCount=n, eliding=True) for n in range(230)]},
        VPN: {"clients": [b.client_object("last", VPN, slowSubscriber="true", txDiscardedMsgCount="12")]},
    }
    found = broker(server).listings("clients")
    assert [each.name for each in found.statistics] == [*(f"c{n}" for n in range(230)), "last"]
    assert [each.sent_messages for each in found.statistics[:3]] == [0, 1, 2]
    assert found.statistics[0].eliding_enabled is True
    assert (found.statistics[-1].message_vpn, found.statistics[-1].slow_subscriber) == (VPN, True)
    assert {each.of: each.total_egress for each in found.discards} == {
        "message VPN default": 0, f"message VPN {VPN}": None, "client last": 12,
    } or {each.of: each.total_egress for each in found.discards}["client last"] == 12  # fmt: skip
    assert found.notes == ()


def test_one_message_vpn_alone_is_asked_for(server: b.BrokerServer, state: b.BrokerState) -> None:
    state.vpns = {"default": {"clients": [b.client_object("a")]}, VPN: {"clients": [b.client_object("z", VPN)]}}
    found = broker(server, VPN).listings("clients")
    assert [each.name for each in found.statistics] == ["z"]
    assert all("/default" not in path for _, path in server.requests)
    with pytest.raises(Refused, match="message VPN none not found"):
        broker(server, "none").listings("clients")


def test_a_user_without_a_visible_message_vpn_is_reported(server: b.BrokerServer, state: b.BrokerState) -> None:
    state.vpns = {}
    with pytest.raises(NotFound, match="no message VPN"):
        broker(server).listings("clients")


@pytest.mark.parametrize("elsewhere", ["http://192.0.2.9:8080", "https://broker.internal"])
def test_a_broker_that_calls_itself_by_another_name_is_read_by_its_cursor(
    server: b.BrokerServer, state: b.BrokerState, elsewhere: str
) -> None:
    state.vpns["default"]["clients"] = [b.client_object(f"c{n}") for n in range(150)]
    known, server.url = server.url, elsewhere
    try:
        asked = broker(type("Known", (), {"url": known})())
        assert len(asked.listings("clients").statistics) == 150
    finally:
        server.url = known


@pytest.mark.parametrize(
    "uri",
    ["http://192.0.2.9/next", "//192.0.2.9/next?x=1", "/SEMP/v2/action/x?a=b", "file:///etc/passwd", "http://[",
     "http://192.0.2.9PATH?cursor=1"],
)  # fmt: skip
def test_a_next_page_elsewhere_is_not_asked_for(server: b.BrokerServer, state: b.BrokerState, uri: str) -> None:
    server.always = b.paging_to(lambda request: uri.replace("PATH", request.path.partition("?")[0]))
    with pytest.raises(InvalidInput, match="next page is not of this collection"):
        broker(server, "default").profiles()
    assert len(server.requests) == 1


def test_paging_without_end_is_bounded(
    server: b.BrokerServer, state: b.BrokerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qsctl.broker.semp.PAGES_MAX", 20)
    count = iter(range(10**9))
    server.always = b.paging_to(lambda request: f"{request.path.partition('?')[0]}?cursor={next(count)}")
    with pytest.raises(InvalidInput, match="more than 20 pages"):
        broker(server, "default").profiles()
    assert len(server.requests) == 20


def test_paging_in_a_circle_is_noticed(server: b.BrokerServer, state: b.BrokerState) -> None:
    server.always = b.paging_to(lambda request: f"{request.path.partition('?')[0]}?cursor=same")
    with pytest.raises(InvalidInput, match="names an earlier page"):
        broker(server, "default").profiles()
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<html>", "not JSON"),
        (b"", "not JSON"),
        (b"[1]", "neither `data` nor `meta`"),
        (b'{"data": {"a": 1}}', "is not a list"),
        (b'{"data": "text"}', "is not a list"),
        (b'{"data": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"data": [' + b"9" * 10_000 + b"]}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
    ids=["html", "empty", "list", "object", "text", "deep", "digits", "octets"],
)
def test_a_reply_that_is_none_is_one_error(
    server: b.BrokerServer, state: b.BrokerState, data: bytes, words: str
) -> None:
    server.always = b.body(data)
    with pytest.raises(InvalidInput, match=words):
        broker(server).listings("clients")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["data", "meta", "paging", "nextPageUri", "cursorQuery", "error", "clientName", "msgVpnName",
                         "slowSubscriber", "clientProfileName", "uptime", "counter", "dataTxMsgCount"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(JSON)
def test_whatever_json_is_answered_the_outcome_is_a_listing_or_one_error(server: b.BrokerServer, document: Any) -> None:
    server.always = b.body(json.dumps({"data": [document], "meta": document}).encode())
    for ask in (lambda: broker(server).listings("clients"), lambda: broker(server, "v").profiles()):
        try:
            ask()
        except QsctlError as error:
            assert error.message


def test_queues_and_connections_are_read_by_semp_v1_page_by_page(server: b.BrokerServer, state: b.BrokerState) -> None:
    state.queues = [client_queues(f"c<{n}>") for n in range(230)]
    state.connections = [
        ClientConnection("c", "default", state="ESTABLISHED", send_queue_bytes=7, blocked_percent=12.5)
    ]
    assert list(broker(server).client_queues().clients) == state.queues
    assert len(server.requests) == 3
    assert list(broker(server, "default").client_queues("c<7>").clients) == [state.queues[7]]
    assert b"<vpn-name>default</vpn-name>" in server.bodies[-1]
    (read,) = broker(server).connections().connections
    assert (read.name, read.send_queue_bytes, read.blocked_percent) == ("c", 7, 12.5)


def test_the_discards_of_the_whole_broker_are_read(server: b.BrokerServer, state: b.BrokerState) -> None:
    state.stats = (
        "<total-egress-discards>3</total-egress-discards><egress-discards>"
        "<transmit-congestion>3</transmit-congestion></egress-discards>"
    )
    (found,) = broker(server).statistics().discards
    assert (found.of, dict(found.causes)) == ("broker", {"transmit_congestion": 3})


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ("<more-cookie><rpc><show><client/></show></rpc></more-cookie>", InvalidInput, "names an earlier page"),
        ("<more-cookie><rpc><admin><reload/></admin></rpc></more-cookie>", Refused, "no `show`"),
        ("<more-cookie><rpc><show/><admin/></rpc></more-cookie>", Refused, "no `show`"),
    ],
)
def test_the_next_request_of_semp_v1_is_a_listing_too(
    server: b.BrokerServer, state: b.BrokerState, more: str, kind: type[QsctlError], words: str
) -> None:
    server.always = lambda request: b.reply(request, "<client/>", more)
    with pytest.raises(kind, match=words):
        broker(server).client_queues()
    assert len(server.requests) <= 2


@pytest.mark.parametrize("data", [b"no xml", b"<!DOCTYPE x [<!ENTITY a 'b'>]><rpc-reply/>", b"<rpc-reply>", b"<a" * 99])
def test_a_reply_of_semp_v1_that_is_none_is_one_error(
    server: b.BrokerServer, state: b.BrokerState, data: bytes
) -> None:
    server.always = b.body(data)
    with pytest.raises(InvalidInput, match="is not XML of SEMP v1"):
        broker(server).client_queues()


def test_profiles_are_read_changed_and_created(server: b.BrokerServer, state: b.BrokerState) -> None:
    state.vpns[VPN] = {}
    state.add_profile("default", "web", queueDirect1MaxDepth=100, queueDirect1MaxDepths=3, ofANewerBroker=1)
    state.add_profile(VPN, "web")
    asked = broker(server)
    read = asked.profiles()
    assert [(each.profile.message_vpn, each.profile.d_1_max_depth_work_units) for each in read.profiles] == [
        ("default", 100), (VPN, 20_000),
    ]  # fmt: skip
    assert len(read.warnings) == 2, "of settings that are not known; a broker mistypes none"
    asked.change_profile(VPN, "web", {"queueDirect1MaxDepth": 50})
    asked.create_profile(VPN, "desks", {"elidingEnabled": True})
    assert [each.profile.name for each in asked.profiles().profiles] == ["web", "web", "desks"]
    assert asked.profiles().profiles[1].profile.d_1_max_depth_work_units == 50
    with pytest.raises(Refused, match="problem with queueDirect1MaxDepth"):
        asked.change_profile(VPN, "web", {"queueDirect1MaxDepth": 1})
    with pytest.raises(Refused, match="already exists"):
        asked.create_profile(VPN, "web", {})


def test_nothing_but_questions_is_asked_of_a_broker_that_is_read(server: b.BrokerServer, state: b.BrokerState) -> None:
    asked = broker(server)
    state.add_profile("default", "web")
    asked.listings("clients", "queues", "topicEndpoints")
    for ask in (asked.profiles, asked.client_queues, asked.connections, asked.statistics):
        ask()
    assert {(method, path.partition("?")[0]) for method, path in server.requests if method != "GET"} == {
        ("POST", "/SEMP")
    }
    assert all(body.startswith(b"<rpc><show>") for body in server.bodies if body)
