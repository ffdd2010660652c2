"""Views of sites, clusters and runs: graphs with depths, members with lag, an instant of a recording."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from qsctl.cli.top.recorded import RunSource
from qsctl.eventlog.location import location
from qsctl.netconfig.graph import LinkKind, SiteLink
from qsctl.netconfig.read import read_netconfig
from qsctl.web._engines import columns_of, graph_of
from qsctl.web._feed import PolledSource
from tests.web.serving import MadeUpSource, look_of, served

ROOT = Path(__file__).parents[2]
LAKESIDE = ROOT / "fixtures/netconfig/lakeside/NetConfig"
MONDAY = ROOT / "fixtures/recordings/monday"


def links(*pairs: str) -> list[SiteLink]:
    return [SiteLink(pair[0], pair[1], LinkKind.ROUTE, 1) for pair in pairs]


@pytest.mark.parametrize(
    ("pairs", "columns"),
    [
        ((), {"a": 0, "b": 0, "c": 0}),
        (("ab", "bc", "ac"), {"a": 0, "b": 1, "c": 2}),
        (("ab", "ba"), {"a": 0, "b": 1, "c": 0}),
        (("aa", "ac"), {"a": 0, "b": 0, "c": 1}),
        (("ca", "ab", "bc"), {"a": 0, "b": 1, "c": 2}),
    ],
)
def test_a_thread_is_right_of_what_feeds_it(pairs: tuple[str, ...], columns: dict[str, int]) -> None:
    assert columns_of("abc", links(*pairs)) == columns


def test_a_long_chain_is_placed_without_recursion() -> None:
    names = [str(at) for at in range(5_000)]
    chain = [SiteLink(one, other, LinkKind.ROUTE, 1) for one, other in itertools.pairwise(names)]
    assert columns_of(names, chain)["4999"] == 4999


def test_the_graph_of_a_site_has_what_waits() -> None:
    rows = [
        {"name": "lab_out 11 outbound post-TPS", "depth": 3},
        {"name": "lab_out 7 outbound pre-TPS", "depth": 2},
        {"name": "unknown 1 inbound", "depth": 4},
    ]
    graph = graph_of(read_netconfig(LAKESIDE).config, rows, "")
    depths = {each["name"]: each["depth"] for each in graph["threads"]}
    assert (depths["lab_out"], depths["adt_in"], graph["elsewhere"]) == (5, 0, 4)
    near = graph_of(read_netconfig(LAKESIDE).config, rows, "LAB")
    assert {each["name"] for each in near["threads"]} == {"lab_out", "adt_in", "orders_in"}


def test_a_site_is_read_again_and_its_faults_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "NetConfig"
    file.write_bytes(LAKESIDE.read_bytes())
    feed = PolledSource("engine", "made up", MadeUpSource(lambda: look_of({"name": "lab_out 1 q", "depth": 1})), 0.1)
    with served(feed, netconfig=file) as page:
        names = [each["name"] for each in page.get("/api/views").document["views"]]
        assert {"live", "engine", "about"} <= set(names)
        assert "cluster" not in names
        assert page.get("/api/engine").document["has_depths"]
        file.unlink()
        gone = page.get("/api/engine")
        assert gone.status in (400, 404)
        assert str(file) in gone.document["error"]["message"]


def test_a_recording_is_shown_at_any_instant() -> None:
    with served(run=RunSource(location(str(MONDAY)), 1.0)) as page:
        (source,) = page.get("/api/views").document["sources"]
        end = source["horizon_ns"]
        found = [page.get(f"/api/run?at={at}").document for at in (0, end // 2, end)]
        assert sum(row["depth"] for row in found[0]["rows"]) == 0
        last = found[-1]["rows"][0]
        assert last["history"][-1] == last["depth"]
        assert len(found[1]["rows"][0]["history"]) == 60
        assert page.get(f"/api/run?at={end + 1}").status == 400
    with served() as page:
        assert page.get("/api/run").status == 404
