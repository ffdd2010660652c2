"""What is printed is read back the same, in lines and flowed into one; the listings of [SOL-QUEUES] to their values."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.profiles.listings.model import ClientQueues, ListedQueueStatistics, Listings, NeighborQueues, SlowSubscriber
from qsctl.profiles.listings.read import read_listings
from qsctl.profiles.listings.write import write_clients, write_connections, write_neighbors, write_slow_subscribers
from tests.example_counts import examples
from tests.profiles.listings import drawn

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"


def read(text: str) -> Listings:
    return read_listings(text.encode(), "listing.txt")


def fixture(name: str) -> Listings:
    return read_listings((FIXTURES / name).read_bytes(), name)


def flowed(text: str) -> str:
    return " ".join(text.split())


def test_the_flowed_client_has_the_values_that_it_states() -> None:
    (client,) = fixture("client_flowed.txt").clients
    assert client.queues == (
        *(ListedQueueStatistics(name, 0, 0, 0, 20_000, 0, 0) for name in ("G-1", "D-1", "D-2", "D-3")),
        ListedQueueStatistics("C-1", 0, 0, 1, 20_000, 0, 3),
    )
    assert (client.name, client.subscriptions, client.client_id, client.uptime_s) == ("solace1", 2, 151, 172)
    assert (client.user, client.computer, client.process_id) == ("whani", "dev184", 11035)
    assert (client.description, client.software_date) == ("", "Oct 19 2010 11:47:18")
    assert client.platform == "Linux26-i386_opt - C SDK"
    assert client.slow_subscriber is client.eliding_enabled is client.parse_error is False
    assert None not in {getattr(client, name) for name in client.__slots__ if name != "client_address"}


def test_the_flowed_neighbour_has_the_values_that_it_states() -> None:
    (neighbor,) = fixture("neighbor_flowed.txt").neighbors
    assert (neighbor.name, neighbor.connect_via, neighbor.control_port) == ("1.2.3.4", "1.2.3.4:55555", None)
    assert [(each.queue, each.length_messages) for each in neighbor.control_queues] == [("CSPF", 0), ("SMRP", 0)]
    assert [each.name for each in neighbor.connections] == ["Conn-1", "Conn-2", "Conn-3", "Conn-4"]
    for connection in neighbor.connections:
        assert connection.queues == tuple(
            ListedQueueStatistics(name, 0, 0, 0, 20_000, 0, 0) for name in ("G-1", "D-1", "D-2", "D-3")
        )


@pytest.mark.parametrize("name", ["client_flowed.txt", "neighbor_flowed.txt"])
def test_a_printed_listing_is_the_source_s_text_but_for_white_space(name: str) -> None:
    found = fixture(name)
    printed = write_clients(found.clients) + write_neighbors(found.neighbors)
    assert flowed(printed) == flowed((FIXTURES / name).read_text(encoding="utf-8"))
    assert len(printed.splitlines()) > 20
    assert read(printed) == found


def test_a_printed_table_has_the_widths_of_the_source_s_rules() -> None:
    lines = write_clients(fixture("client_flowed.txt").clients).splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("-------+"))
    bars = [at for at, character in enumerate(lines[rule]) if character == "+"]
    assert [len(part) for part in lines[rule].split("+")] == [7, 9, 9, 10, 10, 10, 17]
    for line in (*lines[rule - 2 : rule], *lines[rule + 1 : rule + 6]):
        assert [at for at, character in enumerate(line) if character == "|"] == bars
    assert len(lines[rule - 3]) == len(lines[rule])


@given(st.lists(drawn.CLIENTS, min_size=1, max_size=3))
@settings(max_examples=examples(15))
def test_clients_are_read_back_as_they_were_in_lines_and_flowed(clients: list[ClientQueues]) -> None:
    text = write_clients(clients)
    assert read(text).clients == tuple(clients)
    assert read(flowed(text)).clients == tuple(clients)
    assert read("router(admin)> show client * stats queue " + flowed(text)).clients == tuple(clients)


@given(st.lists(drawn.NEIGHBORS, min_size=1, max_size=2))
@settings(max_examples=examples(10))
def test_neighbours_are_read_back_as_they_were_in_lines_and_flowed(neighbors: list[NeighborQueues]) -> None:
    text = write_neighbors(neighbors)
    assert read(text).neighbors == tuple(neighbors)
    assert read(flowed(text)).neighbors == tuple(neighbors)


@given(st.lists(drawn.SLOW, min_size=1, max_size=4), st.lists(drawn.CONNECTIONS, min_size=1, max_size=4))
@settings(max_examples=examples(15))
def test_tables_by_heading_are_read_back_as_they_were(slow: list, connections: list) -> None:
    found = read(write_slow_subscribers(slow) + "\n" + write_connections(connections))
    assert found.slow_subscribers == tuple(slow)
    assert found.connections == tuple(connections)


@given(st.permutations(list(range(6))))
@settings(max_examples=examples(10))
def test_columns_are_known_by_their_headings_in_any_order(order: list[int]) -> None:
    cells = {
        "Name": "a",
        "Message VPN": "v",
        "% Blocked": "12.5",
        "Send-Q Bytes": "7",
        "TCP State": "ESTAB",
        "Zip": "no",
    }
    chosen = [list(cells.items())[place] for place in order]
    line = "  ".join(f"{heading:<14}" for heading, _ in chosen)
    rule = "  ".join("-" * 14 for _ in chosen)
    row = "  ".join(f"{cell:<14}" for _, cell in chosen)
    (one,) = read(f"{line}\n{rule}\n{row}\n").connections
    assert (one.name, one.message_vpn, one.blocked_percent, one.send_queue_bytes, one.state) == (
        "a", "v", 12.5, 7, "ESTAB",
    )  # fmt: skip


def test_several_clients_of_a_captured_session() -> None:
    first, second = fixture("clients.txt").clients
    assert (first.name, first.slow_subscriber, first.large_message, first.parse_error) == ("desk-1", True, True, None)
    assert first.others == (("Client Address", "192.0.2.17:51022"),)
    assert first.queues[1] == ListedQueueStatistics("D-1", 611, 2001, 2001, 2000, 38280, 1_563_644)
    assert (second.name, second.queues[1].delivered_messages) == ("desk-2", 4711)


def test_pages_of_semp_are_one_listing_with_the_same_figures() -> None:
    found = fixture("semp_two_pages.xml")
    told = fixture("clients.txt")
    assert [client.name for client in found.clients] == ["desk-1", "desk-2"]
    assert found.clients[0].queues == told.clients[0].queues[:2]
    assert found.clients[1].queues == told.clients[1].queues[1:2]
    assert (found.clients[0].client_address, found.clients[0].slow_subscriber) == ("192.0.2.17:51022", True)
    assert found.notes == ()


def test_a_page_that_is_missing_is_noted() -> None:
    whole = (FIXTURES / "semp_two_pages.xml").read_bytes()
    first = whole[: whole.index(b"</rpc-reply>") + len(b"</rpc-reply>")]
    found = read_listings(first, "page.xml")
    assert len(found.clients) == 1
    assert "more-cookie" in found.notes[0]


def test_long_names_go_on_in_the_next_line() -> None:
    short, long = fixture("connections_wide.txt").connections
    assert (short.name, short.blocked_percent, short.state) == ("desk-1", 93.33, "ESTAB")
    assert long.name == "a-client-whose-name-is-longer-than-its-column"
    assert (long.client_address, long.send_queue_bytes) == ("192.0.2.18:40011", 0)


def test_a_name_that_ends_like_a_prompt_is_a_row_and_the_next_command_is_none() -> None:
    rows = (SlowSubscriber("a", blocked_percent=1.0), SlowSubscriber("a#", blocked_percent=2.0))
    found = read(write_slow_subscribers(rows) + "router# show client * slow-subscriber\n")
    assert found.slow_subscribers == rows


def test_discards_are_the_same_from_the_cli_and_from_semp() -> None:
    (text, spool), (xml,) = fixture("discards.txt").discards, fixture("discards_captured.xml").discards
    assert {key: count for key, count in text.causes if count} == {key: count for key, count in xml.causes if count}
    assert (text.total_egress, text.total_ingress) == (xml.total_egress, xml.total_ingress) == (56_941_183, 14_407_074)
    captured = (FIXTURES / "discards.txt").read_text()
    flat = read(flowed(captured[captured.index("Total Ingress") :])).discards
    assert flat == (text, spool)
