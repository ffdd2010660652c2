"""The report of an integration engine: routes drawn, and what waits at each thread, hour by hour."""

from __future__ import annotations

from typing import Any

import pytest

from qsctl.instant import HOUR_NS, MINUTE_NS, SECOND_NS
from qsctl.report._engine_report import bin_of, waiting_threads
from qsctl.report.route_graph import rate_text, route_picture
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.site.flows import SiteFlow, site_flows


def window(client: str, at: int, entered: int, left: int, replication: int = 0) -> dict[str, Any]:
    return {
        "client": client, "replication": replication, "window_start_ns": at * MINUTE_NS, "window_ns": MINUTE_NS,
        "entered_messages": entered, "left_messages": left,
    }  # fmt: skip


def test_what_waits_is_what_came_and_has_not_left_hour_by_hour() -> None:
    rows = [window("a", 30, 10, 0), window("a", 90, 0, 4), window("b", 0, 5, 5)]
    first, second = waiting_threads(rows, 3 * HOUR_NS, MINUTE_NS, HOUR_NS)
    assert (first.thread, first.most) == ("a", 10)
    assert first.by_bin == pytest.approx((10 * 30 / 60, (10 * 30 + 6 * 30) / 60, 6))
    assert (second.thread, second.mean) == ("b", 0.0)


def test_replications_are_averaged() -> None:
    rows = [window("a", 0, 10, 0, 0), window("a", 0, 20, 0, 1)]
    (found,) = waiting_threads(rows, HOUR_NS, MINUTE_NS, HOUR_NS)
    assert found.by_bin == (15.0,)


@pytest.mark.parametrize(
    ("horizon_ns", "length_ns"),
    [
        (24 * HOUR_NS, HOUR_NS), (3 * HOUR_NS, HOUR_NS), (10 * MINUTE_NS, MINUTE_NS), (2 * MINUTE_NS, 5 * SECOND_NS),
        (7 * 24 * HOUR_NS, 7 * HOUR_NS), (SECOND_NS, SECOND_NS),
    ],
)  # fmt: skip
def test_bins_are_hours_of_a_day_and_few(horizon_ns: int, length_ns: int) -> None:
    assert bin_of(horizon_ns) == length_ns
    assert -(-horizon_ns // length_ns) <= 24


def test_routes_are_drawn_with_rates_and_depths() -> None:
    engine = read_scenario(find_scenario("clinic")).engine
    assert engine is not None
    drawn = route_picture(site_flows(engine), {"archive_out": 12.345})
    for svg in (drawn.wide, drawn.narrow):
        assert all(name in svg for name in ("adt_in", "orders_in", "lab_out", "rad_out"))
        assert "11.7/s, 12.3 wait" in svg
    assert "wait at the thread" not in route_picture(site_flows(engine)).caption


def test_of_many_links_the_fastest_are_drawn_and_it_is_stated() -> None:
    flows = [SiteFlow(f"in{at}", "p", "*", f"out{at}", "q", "raw", float(at)) for at in range(30)]
    drawn = route_picture(flows, links_max=5)
    assert drawn.caption.startswith("5 of 30 links")
    assert ">in29" in drawn.wide
    assert ">in3 " not in drawn.wide
    assert route_picture([]).wide.startswith("<svg")


def test_rates_are_by_the_second_the_minute_or_the_hour() -> None:
    assert [rate_text(each) for each in (12.0, 0.5, 0.001, 0.0)] == ["12/s", "30/min", "3.6/h", "0/h"]
