"""Statistics as brokers print them: label, blanks, number; whose they are; what is no discard is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.profiles.listings.discards import BY_KEY, CAUSES, SPOOL, SPOOL_FIGURES, TOTALS, cause_named, of_message_vpn
from qsctl.profiles.listings.model import Discards, Listings
from qsctl.profiles.listings.read import read_listings

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"
TOTAL = "Total Egress Discards                 7\n  Transmit Congestion                 7\n"


def read(text: str) -> Listings:
    return read_listings(text.encode(), "f")


def fixture(name: str) -> Listings:
    return read_listings((FIXTURES / name).read_bytes(), name)


def counted(discards: Discards) -> dict[str, int]:
    return {key: count for key, count in discards.causes if count}


def test_the_spool_has_its_own_causes_which_come_to_what_the_clients_statistics_state() -> None:
    broker, spool = fixture("discards.txt").discards
    assert (broker.of, spool.of) == ("broker", SPOOL)
    by_key = counted(spool)
    assert by_key == {
        "endpoint_over_quota": 14_206_998, "low_priority_congestion": 200_076, "ttl_expired": 52_118_004,
        "ttl_expired_to_dmq": 12_007, "redelivery_exceeded": 4_816_614, "redelivery_exceeded_to_dmq": 311,
    }  # fmt: skip
    for side, key in SPOOL_FIGURES.items():
        lost = sum(n for each, n in by_key.items() if BY_KEY[each].side == side and BY_KEY[each].is_loss)
        assert lost == counted(broker)[key]


def test_each_message_vpn_has_its_own() -> None:
    markets, billing, spool = fixture("message_vpns.txt").discards
    assert (markets.of, billing.of) == ("message VPN markets", "message VPN billing")
    assert counted(markets) == {"no_subscription_match": 12, "transmit_congestion": 40_101, "message_elided": 217}
    assert counted(billing) == {"msg_spool_egress": 118}
    assert (markets.total_egress, billing.total_egress, billing.total_ingress) == (40_318, 118, 0)
    assert (spool.of, counted(spool)) == (of_message_vpn("billing"), {"endpoint_over_quota": 9, "ttl_expired": 118})
    assert not fixture("message_vpns.txt").notes
    assert not fixture("discards.txt").notes


def test_replies_are_read_from_what_a_terminal_wrote_around_them() -> None:
    found = fixture("spool_captured.txt")
    spool, queue = found.discards
    assert (spool.of, spool.total_egress, spool.total_ingress) == (SPOOL, 1209, 314)
    assert counted(spool) == {
        "endpoint_over_quota": 310, "spool_duplicate": 4, "ttl_expired": 1200, "ttl_expired_to_dmq": 77,
        "redelivery_exceeded": 9,
    }  # fmt: skip
    assert queue.of == "queue orders"
    assert counted(queue) == {"endpoint_over_quota": 310, "ttl_expired": 1200, "redelivery_exceeded": 9}
    assert found.notes == ("spool_captured.txt: 4 lines around the replies passed over",)


def test_the_line_of_a_problem_is_that_of_the_file_behind_a_prompt() -> None:
    text = (FIXTURES / "spool_captured.txt").read_text().replace(">77<", ">many<")
    (note,) = [each for each in read(text).notes if "is not a whole number" in each]
    line = int(note.split(":")[1])
    assert text.splitlines()[line - 1].strip().startswith("<total-ttl-expired-to-dmq-messages>")


@pytest.mark.parametrize(
    ("text", "of"),
    [
        (TOTAL, "broker"),
        ("Client: desk-1\n" + TOTAL, "client desk-1"),
        ("Client Name    desk-1\n  Uptime    0d 0h 2m 5s\n" + TOTAL, "client desk-1"),
        ("Message VPN: v 1\n" + TOTAL, "message VPN v 1"),
        ("Client: desk-1 Uptime: 5 Total Egress Discards 7 Transmit Congestion 7", "client desk-1"),
        ("Client: a\n" + TOTAL.replace("7", "8") + "r> show stats client\n" + TOTAL, "broker"),
        ("r> show stats client Total Egress Discards: 7 Transmit Congestion: 7", "broker"),
    ],
)
def test_statistics_are_of_what_is_named_above_them(text: str, of: str) -> None:
    last = read(text).discards[-1]
    assert (last.of, last.total_egress, counted(last)) == (of, 7, {"transmit_congestion": 7})


def test_a_longer_label_is_not_read_as_a_shorter_one() -> None:
    (spool,) = read("TTL Exceeded To Discard   3\nVPN Spool Over Quota   9\nSpool Over Quota   4\n").discards
    assert counted(spool) == {"ttl_exceeded": 3, "spool_over_quota": 4}


def test_lines_of_no_listing_are_counted_and_cost_nothing_else() -> None:
    found = read("Copyright 2026, all rights.\n\nlast login: monday\n" + TOTAL)
    assert counted(found.discards[0]) == {"transmit_congestion": 7}
    assert found.notes == ("f:1: 2 lines belong to no listing and count for nothing: Copyright 2026, all rights.",)


def test_a_table_of_something_else_is_passed_over() -> None:
    found = read("Service  TP   Port\n-------- ---- -----\nSMF      TCP  55555\nSMF      TCP  55443\n\n" + TOTAL)
    assert len(found.discards) == 1
    assert "f:1: 1 line belongs" in found.notes[0]
    with pytest.raises(InvalidFile, match="the columns of this table are not known"):
        read("Service  TP   Port\n-------- ---- -----\nSMF      TCP  55555\n")


def test_a_figure_that_cannot_be_read_costs_that_figure() -> None:
    found = read("r> show stats client\nTotal Egress Discards: many\n" + TOTAL.splitlines()[1])
    assert found.discards == (Discards("broker", (("transmit_congestion", 7),)),)
    assert found.notes == ("f:2: Total Egress Discards is not a whole number (broker; found many)",)


def test_a_total_without_a_figure_is_an_error_with_its_line_where_there_is_nothing_else() -> None:
    with pytest.raises(InvalidFile) as caught:
        read("r> show stats client\nTotal Egress Discards: many\n")
    assert (caught.value.problems[0].line, caught.value.problems[0].found) == (2, "many")


def test_quota_refusals_are_at_ingress_and_what_the_spool_drops_is_at_egress() -> None:
    assert BY_KEY["msg_spool_ingress"].outcome == "spool_refused"
    assert "quota" in BY_KEY["msg_spool_ingress"].words
    assert "quota" not in BY_KEY["msg_spool_egress"].words + BY_KEY["msg_spool_egress"].lever
    assert all(cause.side == "ingress" for cause in CAUSES if "quota" in cause.words)


def test_names_mean_one_cause_of_their_statistics_and_side() -> None:
    for cause in CAUSES:
        for name in (cause.element, *cause.labels):
            if name:
                assert cause_named(cause.statistics, cause.side, name) is cause
    assert {name for totals in TOTALS.values() for name in totals.values()}.isdisjoint(
        cause.element for cause in CAUSES
    )
