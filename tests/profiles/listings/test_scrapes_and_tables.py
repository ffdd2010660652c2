"""A scrape of an exporter, and CSV: figures of listings, what is none of them, and what cannot be read."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.declared.problems import InvalidFile
from qsctl.profiles.listings.model import (
    ClientStatistics,
    Discards,
    EndpointUsage,
    ListedQueueStatistics,
    Listings,
    SlowSubscriber,
    SpoolUsage,
)
from qsctl.profiles.listings.prometheus import prometheus_text
from qsctl.profiles.listings.read import read_listings
from tests.example_counts import examples
from tests.profiles.listings import drawn

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"


def read(text: str) -> Listings:
    return read_listings(text.encode(), "f")


def fixture(name: str) -> Listings:
    return read_listings((FIXTURES / name).read_bytes(), name)


def test_metrics_of_an_exporter_are_figures_of_listings() -> None:
    found = fixture("scrape.prom")
    assert found.slow_subscribers == (
        SlowSubscriber("desk-1", "markets", None, "192.0.2.17:51022", True),
        SlowSubscriber("desk-2", "markets", None, "192.0.2.18:40011", False),
    )
    assert found.statistics == (
        ClientStatistics("desk-1", "markets", client_username="desks", sent_messages=1_200_000),
    )
    assert found.discards == (
        Discards("client desk-1", (), 38_280, None),
        Discards("message VPN markets", (), 40_318, 12),
        Discards("broker", (), 40_436, None),
    )
    assert found.endpoints == (
        EndpointUsage(
            "orders",
            "queue",
            "markets",
            spooled_messages=120_034,
            usage_mb=4950.0,
            maximum_usage_mb=5000.0,
            bind_count=4,
        ),
    )
    (spool,) = found.spools
    assert (spool.of, spool.spooled_messages, spool.disk_partition_percent) == ("message spool", 120_040, 38.0)
    assert found.notes == ("scrape.prom: 1 metric of no listing passed over: solace_up",)


@given(st.lists(drawn.CLIENTS, min_size=1, max_size=3, unique_by=lambda client: client.name))
@settings(max_examples=examples(10))
def test_queues_that_qsctl_writes_as_metrics_are_read_back(clients: list) -> None:
    found = read(prometheus_text(Listings(clients=tuple(clients))))
    written = [(each.name, each.message_vpn, sorted(each.queues, key=lambda queue: queue.queue)) for each in clients]
    largest = 2**53  # a metric is a float
    rows = [(each.name, each.message_vpn, sorted(each.queues, key=lambda queue: queue.queue)) for each in found.clients]
    assert [row[:2] for row in rows] == [row[:2] for row in written]
    for (*_, queues), (*_, others) in zip(rows, written, strict=True):
        for queue, other in zip(queues, others, strict=True):
            for field in ListedQueueStatistics.__dataclass_fields__:
                value, was = getattr(queue, field), getattr(other, field)
                assert value == was or was > largest, field


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        ("solace_queue_binds{queue_name=\"q\"} many", "this is no sample"),
        ("solace_queue_binds{queue_name=\"q} 4", "this is no sample"),
        ("solace_queue_binds{queue_name=\"q\" 4", "this is no sample"),
        ("solace_queue_binds{queue_name=\"q\"} NaN", "metric of no listing"),
        ("solace_queue_binds{queue_name=\"q\"} -1", "metric of no listing"),
        ("solace_queue_binds 4", "metric of no listing"),
        ("solace_client_slow_subscriber 1", "metric of no listing"),
        ("<html>", "this is no sample"),
    ],
)  # fmt: skip
def test_a_sample_that_cannot_be_read_costs_that_sample(line: str, noted: str) -> None:
    good = 'solace_queue_binds{queue_name="a\\"b",vpn_name="v"} 3 1764183600000\n'
    found = read(good + line)
    assert found.endpoints == (EndpointUsage('a"b', "queue", "v", bind_count=3),)
    (note,) = found.notes
    assert noted in note


def test_a_table_of_queues_is_read_by_its_headings() -> None:
    found = fixture("queues.csv")
    assert found.endpoints == (
        EndpointUsage(
            "orders", "queue", "markets", spooled_messages=120_034, usage_mb=4950.0, maximum_usage_mb=5000.0,
            max_bind_count=1000,
        ),
        EndpointUsage("bills", "queue", "markets", spooled_messages=0, usage_mb=0.0, maximum_usage_mb=5000.0),
    )  # fmt: skip
    text = (FIXTURES / "queues.csv").read_text(encoding="utf-8")
    assert read(text.replace(",", ";")).endpoints == read(text.replace(",", "\t")).endpoints == found.endpoints
    wrong = read(text.replace("4950", "much"))
    assert wrong.endpoints[0].usage_mb is None
    assert wrong.notes == ("f:2: Spool Usage (MB) is not a size in MB (row orders; found much)",)


def test_tables_of_clients_are_read() -> None:
    text = "client,message_vpn,slow_subscriber,blocked_percent\ndesk-1,markets,true,93.3\n,markets,false,0\n"
    found = read(text)
    assert found.slow_subscribers == (SlowSubscriber("desk-1", "markets", slow_subscriber=True, blocked_percent=93.3),)
    assert found.notes == ("f:3: a row has no name",)
    text = "client,message_vpn,queue,discarded_messages,delivered_messages\na,v,D-1,7,many\na,v,G-1,0,1\nb,,D-1,2,3\n"
    found = read(text)
    assert [(each.name, each.message_vpn, [queue.queue for queue in each.queues]) for each in found.clients] == [
        ("a", "v", ["D-1", "G-1"]), ("b", None, ["D-1"]),
    ]  # fmt: skip
    assert found.clients[0].queues[0].discarded_messages == 7
    assert found.clients[0].queues[0].delivered_messages is None
    assert "delivered_messages is not a whole number" in found.notes[0]
    spools = read("Message VPN,Messages Spooled,Maximum Spool Usage\ndefault,7,1500 MB\n").spools
    assert spools == (SpoolUsage("message spool of message VPN default", maximum_usage_mb=1500.0, spooled_messages=7),)


@given(st.lists(st.lists(st.text("ab1,\"\n;' ", max_size=4), min_size=1, max_size=5), max_size=5))
@settings(max_examples=examples(25))
def test_any_cells_are_listings_or_a_listing_error(rows: list[list[str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream).writerows([["Queue Name", "Messages Spooled"], *rows])
    try:
        read(stream.getvalue())
    except InvalidFile as error:
        assert error.problems


@pytest.mark.slow(beyond=2)
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece", ['solace_up{a="b"} 1\n', "solace_up{", 'a="b",', "# TYPE x counter\n", "x 1 ", '"', "a,b\n", "}{ 1\n"]
)
def test_a_long_text_of_one_piece_comes_to_an_end(piece: str) -> None:
    for begin in ('solace_queue_binds{queue_name="q"} 4\n', "Queue Name,Messages Spooled\n"):
        try:
            read(begin + piece * (200_000 // len(piece)))
        except InvalidFile as error:
            assert error.problems
