"""Monitoring replies of SEMP v2: clients, connections, queues; pages, what stands around them, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.declared.problems import InvalidFile
from qsctl.profiles.listings.discards import BY_KEY
from qsctl.profiles.listings.model import ClientConnection, Discards, EgressFlow, Listings, SlowSubscriber
from qsctl.profiles.listings.read import read_listings
from tests.example_counts import examples

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"


def read(document: object) -> Listings:
    text = document if isinstance(document, str) else json.dumps(document)
    return read_listings(text.encode(), "f")


def fixture(name: str) -> Listings:
    return read_listings((FIXTURES / name).read_bytes(), name)


def counted(discards: Discards) -> dict[str, int]:
    return {key: count for key, count in discards.causes if count}


def test_clients_and_connections_are_read_from_a_terminal_s_capture() -> None:
    found = fixture("semp_v2_clients.json")
    assert found.slow_subscribers == (
        SlowSubscriber("desk-1", "markets", "desks", "192.0.2.17:51022", True),
        SlowSubscriber("desk-2", "markets", "desks", "192.0.2.18:40011", False),
    )
    (connection,) = found.connections
    assert (connection.name, connection.send_queue_bytes, connection.round_trip_us) == ("desk-1", 262_144, 900)
    assert [(each.of, each.total_egress, each.total_ingress) for each in found.discards] == [
        ("client desk-1", 38_280, 0), ("client desk-2", 0, 14),
    ]  # fmt: skip
    assert counted(found.discards[1]) == {"no_subscription_match": 12}
    assert found.notes == ("semp_v2_clients.json: 2 lines around the replies passed over",)


def test_a_page_that_is_missing_is_noted() -> None:
    text = (FIXTURES / "semp_v2_clients.json").read_text()
    found = read(text[: text.index("$ curl", 5)])
    assert any("nextPageUri" in note for note in found.notes)


@pytest.mark.parametrize(("paging", "is_noted"), [({"nextPageUri": "http://b/next"}, True), ({}, False)])
def test_a_last_page_misses_none(paging: dict[str, str], is_noted: bool) -> None:
    document = {"data": [{"clientName": "desk-1", "msgVpnName": "m", "slowSubscriber": True}]}
    found = read({**document, "meta": {"responseCode": 200, "paging": paging}})
    assert any("nextPageUri" in note for note in found.notes) is is_noted


def test_queues_have_the_causes_of_the_spool() -> None:
    (queue,) = fixture("semp_v2_queues.json").discards
    assert queue.of == "queue orders"
    assert counted(queue) == {
        "endpoint_over_quota": 310, "ttl_expired": 1200, "ttl_expired_to_dmq": 77, "redelivery_exceeded": 9,
    }  # fmt: skip
    xml = fixture("spool_captured.txt").discards[1]
    assert {key: n for key, n in counted(queue).items() if key != "ttl_expired_to_dmq"} == counted(xml)


def test_one_object_a_list_and_several_in_a_line_are_read() -> None:
    client = {"clientName": "a", "slowSubscriber": True}
    assert read(client).slow_subscribers == (SlowSubscriber("a", slow_subscriber=True),)
    assert read([client, client]).slow_subscribers == read({"data": client}).slow_subscribers * 2
    line = json.dumps({"data": client})
    assert len(read(line + line + "\n" + line).slow_subscribers) == 3


def test_an_unreadable_figure_costs_that_figure() -> None:
    found = read({"data": {"clientName": "a", "tcpState": "x", "txQueueByteCount": "many", "rxQueueByteCount": 7}})
    assert found.connections == (ClientConnection("a", state="x", receive_queue_bytes=7),)
    assert found.notes == ("f: 1 figure could not be read: txQueueByteCount of a",)
    assert read({"clientName": "a", "slowSubscriber": "true"}).slow_subscribers[0].slow_subscriber is True
    assert read({"clientName": "a", "slowSubscriber": 5}).slow_subscribers[0].slow_subscriber is None


def test_objects_of_another_kind_are_counted() -> None:
    found = read(
        {"data": [{"clientName": "a", "subscriptionTopic": "x"}, {"clientName": "b", "slowSubscriber": False}]}
    )
    assert found.notes == ("f: 1 object of another kind passed over",)
    with pytest.raises(InvalidFile, match="there is no listing in it"):
        read({"data": [{"clientName": "a", "subscriptionTopic": "x"}]})


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('{"meta": {"error": {"code": 6, "description": "Not found"}, "responseCode": 400}}', "Not found", 1),
        ('{"clientName": "a",\n"slowSubscriber": tru}', "this is not JSON", 2),
        ('$ curl\n{"clientName": "a", "slowSubscriber": tru', "this is not JSON", 2),
        ('{"clientName": ' + "[" * 100_000, "nested", 1),
        ('{"clientName": "a", "uptime": ' + "9" * 5000 + "}", "too long", 1),
    ],
)
def test_what_is_no_reply_is_one_error_with_its_line(text: str, words: str, line: int) -> None:
    with pytest.raises(InvalidFile) as caught:
        read(text)
    assert words in caught.value.message
    assert caught.value.problems[0].line == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["clientName", "queueName", "data", "meta", "paging", "error", "slowSubscriber", "tcpState", "uptime",
         "txDiscardedMsgCount", "maxTtlExpiredDiscardedMsgCount"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.slow
@given(JSON)
@settings(max_examples=examples(80))
def test_any_json_is_listings_or_a_listing_error(document: Any) -> None:
    try:
        read(json.dumps({"clientName": "a", "data": document}))
    except InvalidFile as error:
        assert error.problems


@pytest.mark.slow(beyond=1)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["{}\n", "{}", '{"data":[]}\n', "x\n{}", "[]\n[", "}{"])
def test_a_long_text_of_one_piece_comes_to_an_end(piece: str) -> None:
    try:
        read(piece * (300_000 // len(piece)) + '{"clientName":"a","slowSubscriber":true}')
    except InvalidFile as error:
        assert error.problems


def test_causes_are_those_of_the_table() -> None:
    assert {key for key, _ in fixture("semp_v2_queues.json").discards[0].causes} <= set(BY_KEY)


def test_message_vpns_are_read_with_their_discards_in_new_and_old_versions() -> None:
    old = {"msgVpnName": "old", "counter": {"discardedTxMsgCount": 5, "discardedRxMsgCount": "6"}, "rate": {}}
    new = {"msgVpnName": "new", "discardedTxMsgCount": 7, "discardedRxMsgCount": 0, "state": "up"}
    found = read({"data": [new, old, {"msgVpnName": "bare"}], "meta": {"responseCode": 200}})
    assert found.discards == (Discards("message VPN new", (), 7, 0), Discards("message VPN old", (), 5, 6))
    assert any("1 object of another kind" in note for note in found.notes)


def test_eliding_counts_rates_and_sizes_of_clients_are_read() -> None:
    client = {
        "clientName": "c", "msgVpnName": "v", "clientProfileName": "web", "slowSubscriber": "true", "eliding": True,
        "elidingTopicCount": 3, "elidingTopicPeakCount": "9", "txMsgCount": 11, "dataTxMsgCount": 10,
        "dataTxByteCount": 5000, "txDiscardedMsgCount": 4, "averageTxMsgRate": 2, "txByteRate": 900, "uptime": "x",
    }  # fmt: skip
    (statistics,) = read({"data": client}).statistics
    assert (statistics.client_profile, statistics.slow_subscriber, statistics.eliding_enabled) == ("web", True, True)
    assert (statistics.eliding_topics, statistics.eliding_topics_high_water_mark) == (3, 9)
    assert (statistics.sent_messages, statistics.sent_bytes, statistics.discarded_messages) == (10, 5000, 4)
    assert (statistics.sent_messages_per_second, statistics.sent_bytes_per_second) == (2, 900)
    assert (statistics.uptime_s, statistics.received_messages) == (None, None)


def test_flows_are_read_with_their_windows() -> None:
    flow = {"clientName": "c", "msgVpnName": "v", "endpointName": "q", "windowSize": 50, "usedWindowSize": 7,
            "unackedMsgCount": 9, "flowId": 3}  # fmt: skip
    found = read({"data": [flow], "meta": {"responseCode": 200}})
    assert found.flows == (EgressFlow("c", "v", "q", 50, 7, 9),)
    assert found.clients == found.statistics == ()
