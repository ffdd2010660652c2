"""`dds:DOMAIN[?…]`: how a place on DDS is written, and what a wrong one is told."""

from __future__ import annotations

import pytest

from qsctl.cli.samples._request_queue import printable, request_queue
from qsctl.client.dds_location import parse_dds_location
from qsctl.errors import UsageError
from qsctl.transport.dds.participant import LEASE_DURATION_NS, DomainSettings


def test_a_domain_alone_is_on_the_loopback_with_the_usual_lease() -> None:
    assert parse_dds_location("7") == (7, DomainSettings("lo", (), LEASE_DURATION_NS))


def test_interface_peers_and_lease_can_be_given() -> None:
    domain, settings = parse_dds_location("0?interface=eth0&peer=10.0.0.2&peer=10.0.0.3&lease=2s")
    assert domain == 0
    assert settings == DomainSettings("eth0", ("10.0.0.2", "10.0.0.3"), 2_000_000_000)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", "'' is not a domain id"),
        ("x", "'x' is not a domain id"),
        ("231", "'231' is not a domain id"),
        ("-1", "'-1' is not a domain id"),
        ("7?speed=2", "'speed' is not a parameter"),
        ("7?lease=1s&lease=2s", "lease is given twice"),
        ("7?lease=soon", "'soon' is not a duration"),
    ],
)
def test_a_wrong_location_is_refused_with_the_fault(rest: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_dds_location(rest)


def test_requests_travel_over_dds_only() -> None:
    with pytest.raises(UsageError, match="is not on DDS"):
        request_queue("A@B", "embedded:", 1.0)


def test_a_queue_is_named_by_topic_and_subscriber() -> None:
    assert request_queue("A@B@C", "dds:3", 1.0)[:3] == ("A@B", "C", 3)


def test_what_is_no_text_is_shown_in_hexadecimal() -> None:
    assert (printable("grün".encode()), printable(b"\xff\x00")) == ("grün", "0xff00")
