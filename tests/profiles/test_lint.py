"""Rules on profiles: each with numbers and a lever, and silence where nothing is wrong."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.profiles.client_profile import Queue, Threshold
from qsctl.profiles.lint import Circumstances, LintFinding, Weight, lint
from qsctl.profiles.ranges import default_profile
from tests.profiles.drawn import PROFILES

RECEIVING = {"allow_guaranteed_message_receive": True}


def findings(known: Circumstances | None = None, **values: Any) -> list[LintFinding]:
    return list(lint(dataclasses.replace(default_profile("p"), **values), known))


def rules(known: Circumstances | None = None, **values: Any) -> list[tuple[str, str, str]]:
    return [(each.rule, each.weight.value, each.setting) for each in findings(known, **values)]


def test_the_vendor_s_defaults_have_no_findings() -> None:
    assert rules() == []
    assert rules(Circumstances(flows=1), **RECEIVING) == []


def test_a_burst_below_flows_times_window_throttles_where_the_depth_admits_no_more() -> None:
    known = Circumstances(flows=10, window_messages=255, message_bytes=20_480)
    (found,) = findings(known, **RECEIVING)
    assert (found.rule, found.weight) == ("g-1-burst-below-window", Weight.WARNING)
    assert "at most 2,000 of 2,550" in found.message
    assert "255 < 10 × 255 = 2,550" in found.numbers
    assert "2,550 or more" in found.lever
    small = dataclasses.replace(known, message_bytes=2048)
    assert rules(small, **RECEIVING) == [("g-1-burst-below-window", "note", "g_1_min_msg_burst")]
    assert rules(known, **RECEIVING, g_1_min_msg_burst=2550) == []


def test_flows_that_cannot_be_opened_or_receive_nothing_are_reported() -> None:
    known = Circumstances(flows=1001, window_messages=1)
    assert [rule for rule, _, _ in rules(known, g_1_min_msg_burst=1001)] == [
        "flows-above-limit",
        "guaranteed-receive-denied",
    ]


@pytest.mark.parametrize(
    ("topics", "depth", "told"), [(80, 79, True), (80, 80, False), (0, 255, True), (0, 256, False)]
)
def test_eliding_needs_room_for_a_message_of_each_topic(topics: int, depth: int, told: bool) -> None:
    found = rules(Circumstances(topics=topics), eliding_enabled=True, d_2_max_depth_work_units=depth)
    assert found == ([("eliding-depth", "warning", "d_2_max_depth_work_units")] if told else [])


def test_more_topics_than_are_elided_are_reported_and_a_delay_without_eliding() -> None:
    assert ("eliding-topics", "warning", "eliding_max_topics") in rules(Circumstances(topics=300), eliding_enabled=True)
    assert rules(eliding_delay_ms=5) == [("eliding-delay-without-eliding", "note", "eliding_delay_ms")]


def test_depths_above_a_hundred_are_reported_for_web_clients() -> None:
    known = Circumstances(is_web=True)
    deep = {f"d_{n}_max_depth_work_units": 100 for n in (1, 2)}
    assert rules(known, **deep, d_3_max_depth_work_units=101) == [("web-depth", "warning", "d_3_max_depth_work_units")]
    assert rules(known, eliding_enabled=True) == []


def test_a_depth_below_the_queued_work_units_is_reported_to_keep_them() -> None:
    known = Circumstances(queued_work_units={Queue.D_1: 1500, Queue.G_1: 1500})
    found = findings(known, d_1_max_depth_work_units=100, g_1_max_depth_work_units=1499)
    assert {each.setting for each in found} == {"d_1_max_depth_work_units", "g_1_max_depth_work_units"}
    assert any("discards the oldest" in each.message for each in found)
    assert any("wait at their endpoints" in each.message for each in found)
    assert rules(known, d_1_max_depth_work_units=1500) == []


def test_deprecated_attributes_are_reported_where_the_file_states_them() -> None:
    assert rules(tcp_max_window_kb=512) == [("deprecated", "warning", "tcp_max_window_kb")]
    assert rules(Circumstances(stated=frozenset({"tcp_mss_bytes"})), tcp_max_window_kb=512) == []


@pytest.mark.parametrize(
    ("threshold", "told"),
    [
        (Threshold(60, 80), ["threshold-reversed"]),
        (Threshold(60, 60), []),
        (Threshold(1001, 900, False), ["threshold-above-limit"]),
        (Threshold(900, 1001, False), ["threshold-reversed"]),
        (Threshold(1000, 900, False), []),
    ],
)
def test_thresholds_are_in_order_and_can_be_reached(threshold: Threshold, told: list[str]) -> None:
    assert [rule for rule, _, _ in rules(egress_flows_threshold=threshold)] == told


def test_a_queue_that_never_holds_a_second_message_is_reported() -> None:
    known = Circumstances(message_bytes=20_480)
    assert rules(known, d_1_max_depth_work_units=9, d_1_min_msg_burst=1) == [
        ("depth-below-one-message", "warning", "d_1_max_depth_work_units")
    ]
    assert rules(known, d_1_max_depth_work_units=9, d_1_min_msg_burst=4) == []


def test_a_window_over_a_round_trip_caps_the_connection() -> None:
    """W8: 256 KB at 100 ms is 21 Mbit/s; 1 Gbit/s needs 12.5 MB."""
    known = Circumstances(round_trip_ns=100 * MILLISECOND_NS, bits_per_second=1_000_000_000)
    (found,) = findings(known)
    assert (found.rule, found.weight, found.setting) == ("window-below-rate", Weight.WARNING, "tcp_max_window_kb")
    assert found.numbers == "256 KB × 8 ÷ 100ms = 21 Mbit/s < 1 Gbit/s"
    assert "12,208 KB or more" in found.lever
    assert ("window-below-rate", "note", "tcp_max_window_kb") in rules(known, tcp_max_window_kb=12_208)
    assert ("window-below-rate", "warning", "tcp_max_window_kb") in rules(known, tcp_max_window_kb=12_207)
    assert findings(dataclasses.replace(known, bits_per_second=0))[0].weight is Weight.NOTE
    (far,) = findings(dataclasses.replace(known, bits_per_second=100_000_000_000))
    assert "connections" in far.lever


def test_w13_loss_caps_the_connection_whatever_its_window() -> None:
    """1,460 B over 50 ms: about 9.0 Mbit/s with a thousandth of the segments lost, where the window has 41.9."""
    known = Circumstances(round_trip_ns=50 * MILLISECOND_NS, bits_per_second=20_000_000, loss=0.001)
    (found,) = findings(known)[:1]
    assert (found.rule, found.weight, found.setting) == ("loss-below-rate", Weight.WARNING, "tcp_mss_bytes")
    assert found.numbers == "1.22 × 1,460 B × 8 ÷ (50ms × √0.001) = 9.01 Mbit/s < 20 Mbit/s"
    assert "take 3 connections" in found.lever
    assert ("loss-below-rate", "warning", "tcp_mss_bytes") in rules(known, tcp_max_window_kb=65_536)
    slower = dataclasses.replace(known, bits_per_second=9_000_000)
    assert ("loss-below-rate", "note", "tcp_mss_bytes") in rules(slower)
    rarely = dataclasses.replace(known, loss=0.00001)
    assert not [rule for rule, *_ in rules(rarely) if rule == "loss-below-rate"]  # the window is the tighter limit


@pytest.mark.parametrize(
    ("flows", "window", "told"),
    [(1, 255, "flow_window"), (40, 255, None), (40, 600, None), (10, 800, "g_1_min_msg_burst")],
)
def test_what_is_in_flight_a_round_trip_caps_guaranteed_delivery(flows: int, window: int, told: str | None) -> None:
    """80 Mbit/s are 10,000 messages of 1,000 B a second; 100 ms ask for 1,000 in flight (W1, W3)."""
    known = Circumstances(
        flows=flows, window_messages=window, message_bytes=1000, round_trip_ns=100 * MILLISECOND_NS,
        bits_per_second=80_000_000,
    )  # fmt: skip
    found = findings(known, **RECEIVING, g_1_max_depth_work_units=900, g_1_min_msg_burst=900 if told else 25_000)
    capped = [each for each in found if each.rule == "in-flight-below-rate"]
    assert [each.setting for each in capped] == ([told] if told else [])
    assert all("1,000 messages in flight" in each.lever for each in capped)


def test_the_application_s_acknowledgments_and_the_window_are_two_things() -> None:
    """W12: 2,000/s, window 255, limit 10,000, acknowledged after 1 s: nothing throttles; with limit 1,000: 1,000/s."""
    known = Circumstances(
        flows=1, message_bytes=1000, bits_per_second=16_000_000, acknowledge_after_ns=SECOND_NS,
        unacknowledged_limit=10_000,
    )  # fmt: skip
    assert rules(known, **RECEIVING) == []
    (found,) = findings(dataclasses.replace(known, unacknowledged_limit=1000), **RECEIVING)
    assert (found.rule, found.setting) == ("unacknowledged-below-rate", "unacknowledged_limit")
    assert found.numbers == "1 × 1,000 ÷ 1s = 1,000/s < 2,000/s"
    assert "2,000 or more" in found.lever


def test_a_consumer_that_acknowledges_nothing_gets_the_limit() -> None:
    """W7: with limit 5 exactly five messages arrive, whatever the window."""
    known = Circumstances(flows=1, unacknowledged_limit=5, acknowledge_after_ns=INFINITE_NS)
    found = findings(known, **RECEIVING)
    assert [each.rule for each in found] == ["never-acknowledged", "unacknowledged-below-window"]
    assert "delivers 5 messages, then none" in found[0].message


@given(profile=PROFILES, flows=st.integers(0, 2000), size=st.integers(1, 100_000))
def test_a_finding_has_numbers_and_a_lever_and_warnings_come_first(profile: Any, flows: int, size: int) -> None:
    found = lint(profile, Circumstances(flows=flows, message_bytes=size, is_web=True))
    assert all(each.numbers and each.lever and each.source for each in found)
    weights = [each.weight for each in found]
    assert weights == sorted(weights, key=lambda weight: weight is Weight.NOTE)
