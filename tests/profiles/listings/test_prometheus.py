"""Listings as Prometheus metrics: every figure under its labels, the last capture of a client counts."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from qsctl.profiles.listings.model import Discards, Listings, SlowSubscriber
from qsctl.profiles.listings.prometheus import prometheus_text
from qsctl.profiles.listings.read import read_listings

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"


def samples(listings: Listings) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(prometheus_text(listings))
        for sample in family.samples
    }


def test_every_figure_of_a_queue_is_a_sample() -> None:
    found = samples(read_listings((FIXTURES / "clients.txt").read_bytes(), "f"))
    labels = ("D-1", "desk-1", "markets")
    assert found["qsctl_client_queue_length_messages", labels] == 611
    assert found["qsctl_client_queue_length_work_units", labels] == 2001
    assert found["qsctl_client_queue_high_water_mark_work_units", labels] == 2001
    assert found["qsctl_client_queue_max_depth_work_units", labels] == 2000
    assert found["qsctl_client_queue_discarded_messages_total", labels] == 38280
    assert found["qsctl_client_queue_delivered_messages_total", labels] == 1_563_644
    assert found["qsctl_client_slow_subscriber", ("desk-1", "markets")] == 1
    assert found["qsctl_client_slow_subscriber", ("desk-2", "markets")] == 0
    assert len([name for name, _ in found if name.startswith("qsctl_client_queue")]) == 2 * 5 * 6


def test_neighbours_connections_and_discards_have_metrics_too() -> None:
    neighbors = read_listings((FIXTURES / "neighbor_flowed.txt").read_bytes(), "f").neighbors
    listings = Listings(neighbors=neighbors, discards=(Discards("broker", (("transmit_congestion", 893),)),))
    found = samples(listings)
    assert found["qsctl_neighbor_queue_max_depth_work_units", ("1.2.3.4", "Conn-4", "D-3")] == 20_000
    assert found["qsctl_neighbor_control_length_messages", ("1.2.3.4", "SMRP")] == 0
    assert found["qsctl_discards_messages_total", ("broker", "transmit_congestion")] == 893


def test_names_are_escaped_and_the_last_capture_counts() -> None:
    name = 'quote " slash \\ line\n'
    rows = (SlowSubscriber(name, blocked_percent=1.0), SlowSubscriber(name, blocked_percent=2.5))
    assert samples(Listings(slow_subscribers=rows)) == {("qsctl_client_blocked_percent", ("", name)): 2.5}
