"""What a terminal wrote: pagers, prompts, bundles, replies among listings; queues and spool in tables and in lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.profiles.listings.model import EndpointUsage, Listings, SpoolUsage
from qsctl.profiles.listings.read import read_listings
from qsctl.profiles.listings.terminal import shown_lines

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"
CLIENTS = (FIXTURES / "clients.txt").read_text(encoding="utf-8")
XML = (FIXTURES / "discards_captured.xml").read_text(encoding="utf-8")
JSON = (FIXTURES / "semp_v2_clients.json").read_text(encoding="utf-8")
STATISTICS = (FIXTURES / "discards.txt").read_text(encoding="utf-8")


def read(text: str | bytes) -> Listings:
    return read_listings(text if isinstance(text, bytes) else text.encode(), "f")


def without_notes(found: Listings) -> dict[str, object]:
    return {name: getattr(found, name) for name in Listings.__dataclass_fields__ if name != "notes"}


PAGERS = {
    "a line of its own": "--More--\n",
    "with a percentage": "--More--(42%)\n",
    "of more": "-- (more) --\n",
    "of the broker": "Press any key to continue (`q' to quit)\n",
    "erased by blanks": "--More--\r        \r",
    "erased by an escape sequence": "--More--\r\x1b[K",
    "in colour, erased": "\x1b[7m--More--\x1b[m\r\x1b[K",
    "erased by backspaces": "--More--" + "\b" * 8 + " " * 8 + "\b" * 8,
    "joined to the line": "--More-- ",
}


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("pager", PAGERS.values(), ids=PAGERS)
@pytest.mark.parametrize("text", [CLIENTS, STATISTICS], ids=["clients", "statistics"])
def test_a_pager_between_any_two_lines_changes_nothing(pager: str, text: str) -> None:
    lines = text.splitlines(keepends=True)
    whole = without_notes(read(text))
    for at in range(1, len(lines), 5):
        if pager == "--More-- " and not lines[at].strip():
            continue  # a prompt alone in its line hides no line
        paged = "".join(lines[:at]) + pager + "".join(lines[at:])
        assert without_notes(read(paged)) == whole, lines[at]
        assert without_notes(read(paged.replace("\n", "\r\n"))) == whole


@pytest.mark.parametrize("pager", PAGERS.values(), ids=PAGERS)
def test_lines_keep_their_number_behind_a_pager(pager: str) -> None:
    at = CLIENTS.index("*** Client Transmit Queues")
    at = CLIENTS.rindex("\n", 0, at) + 1
    paged = CLIENTS[:at] + pager + CLIENTS[at:].replace("38280", "many")
    (note,) = read(paged).notes
    assert "many" in paged.splitlines()[int(note.split(":")[1]) - 1] if "\r" not in pager else "many" in note


def test_text_written_over_is_as_the_terminal_showed_it() -> None:
    assert shown_lines("ab\b\bxy\nc\x1b[1;31md\x1b[0m\x07\n") == ("xy\ncd\n", [1, 2, 3])
    assert shown_lines("a\rb\n") == ("a\nb\n", [1, 1, 2])
    assert shown_lines("a\rb") == ("a\nb", None)
    assert shown_lines("plain\n") == ("plain\n", None)


def test_replies_and_listings_one_after_the_other_are_all_read() -> None:
    found = read(f"$ ssh broker\n{STATISTICS}\n{CLIENTS}\n$ curl broker/SEMP\n{XML}\n{JSON}\n{CLIENTS}")
    assert [client.name for client in found.clients] == ["desk-1", "desk-2"] * 2
    assert [each.of for each in found.discards] == [
        "broker", "message spool", "broker", "client desk-1", "client desk-2",
    ]  # fmt: skip
    assert len(found.slow_subscribers) == 2
    assert [note for note in found.notes if "belong" in note]


def test_the_lines_of_each_part_are_those_of_the_file() -> None:
    text = f"{CLIENTS}\n{XML}\n{STATISTICS}".replace(">893<", ">some<").replace("   4816614", "   -5")
    notes = read(text).notes
    lines = text.splitlines()
    assert [lines[int(note.split(":")[1]) - 1].strip() for note in notes if "whole number" in note] == [
        "<transmit-congestion>some</transmit-congestion>"
    ]


def test_a_reply_that_refuses_costs_that_reply() -> None:
    refused = '<rpc-reply><execute-result code="fail" reason="no such client"/></rpc-reply>\n'
    found = read(CLIENTS + refused)
    assert found.clients == read(CLIENTS).clients
    assert any("the broker answers with a failure" in note and "no such client" in note for note in found.notes)
    with pytest.raises(InvalidFile, match="answers with a failure"):
        read("$ curl\n" + refused)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_byte_order_marks_state_the_encoding(encoding: str) -> None:
    assert without_notes(read(CLIENTS.encode(encoding))) == without_notes(read(CLIENTS))


def test_a_byte_of_another_encoding_costs_its_value() -> None:
    found = read(CLIENTS.replace("desk-1", "d\u00e9sk").encode("latin-1"))
    assert [client.name for client in found.clients] == ["d\ufffdsk", "desk-2"]
    assert found.notes[-1] == "f:3: this is not UTF-8 (found byte 0xe9)"
    with pytest.raises(InvalidFile, match="this is not UTF-8"):
        read(b"\xff\xfa\x00nothing")


def test_queues_are_read_from_the_table_with_the_message_vpn_below_the_name() -> None:
    orders, other = read(STATISTICS).endpoints
    assert orders == EndpointUsage(
        "orders", "queue", "markets", spooled_messages=61_877_004, usage_mb=68_211.25, high_water_mark_mb=69_900.0,
        bind_count=4,
    )  # fmt: skip
    assert (other.name, other.message_vpn) == ("#P2P/QUE/v:router1/desk-1-of-a-long-name/queue", "markets")


def test_the_spool_is_read_in_lines() -> None:
    (spool,) = read(STATISTICS).spools
    assert spool == SpoolUsage(
        "message spool", "Enabled (Primary)", "AD-Active", maximum_usage_mb=75_000.0, usage_mb=68_223.75,
        spooled_messages=61_880_124, message_count_percent=12.4, unacknowledged_percent=3.0, spool_files_percent=64.0,
        disk_partition_percent=38.08,
    )  # fmt: skip


def test_the_spool_of_each_message_vpn_is_read_as_a_table_and_in_lines() -> None:
    table = (
        "r> show message-spool message-vpn *\n\n"
        "                       Current    Spool   Maximum\n"
        "                      Messages    Usage     Spool\n"
        "Message VPN            Spooled     (MB)     Usage\n"
        "------------------ ----------- -------- ---------\n"
        "default                     12     0.50      1500\n"
        "markets                      0        -   unknown\n"
    )
    found = read(table)
    assert found.spools == (
        SpoolUsage("message spool of message VPN default", maximum_usage_mb=1500.0, usage_mb=0.5, spooled_messages=12),
        SpoolUsage("message spool of message VPN markets", spooled_messages=0),
    )
    assert found.notes == ("f:8: Maximum Spool Usage is not a size in MB (row markets; found unknown)",)
    lines = "r> show message-spool message-vpn default detail\n\nMessage VPN:  default\nMaximum Spool Usage:  1500 MB\n"
    assert read(lines).spools == (SpoolUsage("message spool of message VPN default", maximum_usage_mb=1500.0),)


def test_queues_are_read_in_lines_with_their_discards() -> None:
    text = """broker(configure)# show queue * detail

Name                                   : orders
Message VPN                            : markets
Durability                             : Durable
Access-Type                            : Exclusive
Current Messages Spooled               : 12
Current Spool Usage (MB)               : 0.5000
High Water Mark (MB)                   : 4.2500
Max Spool Usage (MB)                   : 5000
Max Delivered Unacked Msgs Per Flow    : 10000
Max Bind Count                         : many

Name                                   : bills
Message VPN                            : markets
Current Messages Spooled               : 0

broker(configure)# show queue orders message-vpn markets stats
  Spool Usage Exceeded:                        310
  Messages Expired To Discard:                1200
"""
    found = read(text)
    assert found.endpoints == (
        EndpointUsage(
            "orders", "queue", "markets", spooled_messages=12, usage_mb=0.5, high_water_mark_mb=4.25,
            maximum_usage_mb=5000.0, max_unacknowledged_per_flow=10_000, access_type="Exclusive",
        ),
        EndpointUsage("bills", "queue", "markets", spooled_messages=0),
    )  # fmt: skip
    assert [(each.of, dict(each.causes)) for each in found.discards] == [
        ("queue orders", {"endpoint_over_quota": 310, "ttl_expired": 1200})
    ]
    assert found.notes == ("f:12: Max Bind Count is not a whole number (queue orders; found many)",)


@pytest.mark.parametrize(
    ("command", "of"),
    [
        ("show client desk-1 stats", "client desk-1"),
        ('show message-vpn "markets" stats', "message VPN markets"),
        ("show message-vpn * stats", "broker"),
        ("show stats client", "broker"),
    ],
)
@pytest.mark.parametrize(
    "before", ["router1> {}\n", "router1(configure)# {}\n", "# CLI command: {}\n# Host: a\n#####\n"]
)
def test_a_command_names_whose_its_statistics_are(command: str, of: str, before: str) -> None:
    text = before.format(command) + "Total Egress Discards          7\n  Transmit Congestion          7\n"
    assert [each.of for each in read(text).discards] == [of]


def test_semp_v1_replies_of_spool_and_queues_are_read() -> None:
    reply = (
        """<rpc-reply semp-version="soltr/9_2_0"><rpc><show>{}</show></rpc><execute-result code="ok"/></rpc-reply>"""
    )
    spool = """<message-spool><message-spool-info><config-status>Enabled (Primary)</config-status>
      <max-disk-usage>60000</max-disk-usage><current-persist-usage>12.5</current-persist-usage>
      <delivered-unacked-msgs-utilization-percentage>0.00</delivered-unacked-msgs-utilization-percentage>
      <total-messages-currently-spooled>7</total-messages-currently-spooled></message-spool-info></message-spool>"""
    assert read(reply.format(spool)).spools == (
        SpoolUsage(
            "message spool", "Enabled (Primary)", None, maximum_usage_mb=60_000.0, usage_mb=12.5, spooled_messages=7,
            unacknowledged_percent=0.0,
        ),
    )  # fmt: skip
    vpns = """<message-spool><message-vpn><vpn><name>default</name>
      <current-messages-spooled>1</current-messages-spooled>
      <current-spool-usage-mb>2</current-spool-usage-mb><maximum-spool-usage-mb>1000</maximum-spool-usage-mb></vpn>
      </message-vpn></message-spool>"""
    assert read(reply.format(vpns)).spools == (
        SpoolUsage("message spool of message VPN default", maximum_usage_mb=1000.0, usage_mb=2.0, spooled_messages=1),
    )
    queues = """<queue><queues><queue><name>q</name><info><message-vpn>default</message-vpn>
      <num-messages-spooled>3</num-messages-spooled><high-water-mark-in-mb>9.44138e-05</high-water-mark-in-mb>
      <bind-count>some</bind-count></info></queue></queues></queue>"""
    found = read(reply.format(queues))
    assert found.endpoints == (
        EndpointUsage("q", "queue", "default", spooled_messages=3, high_water_mark_mb=9.44138e-05),
    )
    assert len(found.notes) == 1
    assert read(reply.format("<queue><queues/></queue>")).is_empty
