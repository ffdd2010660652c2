"""The list: one poll for all, pages of thousands of rows, histories that are not joined, sources that vanish."""

from __future__ import annotations

import json
import math
import socket
import time

import pytest

from qsctl.cli.top.look import Look
from qsctl.errors import NoAnswer
from qsctl.web._context import STREAMS_MAX
from qsctl.web._feed import PolledSource
from qsctl.web._history import CELLS_MAX, POINTS_MAX, SERIES, FigureRing, History
from qsctl.web._live import SPARK_POINTS, RowPage
from tests.web.serving import MadeUpSource, look_of, served

HOSTILE = '"><img src=x onerror=alert(1)>\u202e\x1b[2J\n'


def feed_of(source: MadeUpSource, interval_s: float = 0.05) -> PolledSource:
    return PolledSource("service", "made up", source, interval_s)


def test_two_readers_are_served_by_one_poll() -> None:
    source = MadeUpSource(lambda: look_of({"name": "Orders", "depth": 3, "in_per_s": 1.5}))
    feed = feed_of(source)
    with served(feed) as page, page.stream("/api/live") as one, page.stream("/api/live") as other:
        for stream in (one, other):
            found = stream.next()
            while not found["rows"]:
                found = stream.next()
            assert found["rows"][0] | {"history": []} == {
                "name": "Orders", "depth": 3, "in_per_s": 1.5, "history": [],
            }  # fmt: skip
        assert page.context.stream_count == 2
        for _ in range(5):
            one.next()
            other.next()
        assert source.looked_count <= feed.number + 1


def test_a_name_and_a_note_are_data_and_nothing_else() -> None:
    look = Look("Queue", (), [{"name": HOSTILE}], HOSTILE, HOSTILE)
    with served(feed_of(MadeUpSource(lambda: look))) as page, page.stream("/api/live") as stream:
        found = stream.next()
        while not found["rows"]:
            found = stream.next()
        assert (found["rows"][0]["name"], found["note"]) == (HOSTILE, HOSTILE)


def test_a_source_that_vanishes_keeps_its_rows_marked_and_returns_with_a_gap() -> None:
    state = {"is_there": True}

    def look() -> Look:
        if not state["is_there"]:
            raise NoAnswer("no service answered", remedy="Start it.")
        return look_of({"name": "Orders", "depth": 3})

    with served(feed_of(MadeUpSource(look))) as page, page.stream("/api/live") as stream:
        while not stream.next()["rows"]:
            pass
        state["is_there"] = False
        while not (found := stream.next())["error"]:
            pass
        assert found["error"] == "no service answered. Start it."
        assert found["rows"][0]["depth"] == 3
        state["is_there"] = True
        while (found := stream.next())["error"]:
            pass
        history = found["rows"][0]["history"]
        assert None in history
        assert history[-1] == 3


def test_a_reader_that_accepts_nothing_keeps_no_other_waiting() -> None:
    rows = [{"name": f"Q{at}" * 40, "depth": at} for at in range(200)]
    with served(feed_of(MadeUpSource(lambda: look_of(*rows)))) as page:
        stuck = socket.create_connection(("127.0.0.1", page.access.port))
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = (
            f"GET /api/live?count=200 HTTP/1.1\r\nhost: 127.0.0.1:{page.access.port}\r\n"
            f"x-qsctl-token: {page.access.token}\r\n\r\n"
        )
        stuck.sendall(request.encode())
        with page.stream("/api/live") as stream:
            for _ in range(40):
                stream.next()
            assert page.get("/api/about").document["stream_count"] == 2
        stuck.close()
        while page.context.stream_count > 0:  # seen by its next event
            time.sleep(0.01)


def test_a_stream_beyond_the_bound_is_refused_and_room_is_made_by_an_end() -> None:
    with served(feed_of(MadeUpSource(look_of))) as page:
        page.context.stream_count = STREAMS_MAX
        answer = page.get("/api/live")
        assert answer.status == 503
        assert page.context.refused == {"streams": 1}
        page.context.stream_count = 0
        with page.stream("/api/live") as stream:
            assert stream.response.status == 200


def test_the_end_of_the_server_ends_its_streams() -> None:
    with served(feed_of(MadeUpSource(look_of))) as page:
        connection = page.connection()
        connection.request("GET", "/api/live", headers={"x-qsctl-token": page.access.token})
        response = connection.getresponse()
        response.readline()
    assert response.read().count(b"\n") < 100
    response.close()
    connection.close()


@pytest.mark.parametrize(
    "query", ["count=0", "count=201", "count=x", "first=-1", "count=%D9%A1", "filter=" + "a" * 256, "source=nothing",
              "filter=" + "*a" * 9]
)  # fmt: skip
def test_a_parameter_out_of_range_is_explained(query: str) -> None:
    with served(feed_of(MadeUpSource(look_of))) as page:
        answer = page.get(f"/api/live?{query}")
        assert answer.status in (400, 404)
        assert answer.document["error"]["remedy"]


ROWS = [{"name": f"P/S/Q{at:04d}", "depth": at * 7 % 5000, "role": "master" if at % 2 else ""} for at in range(5000)]


@pytest.mark.parametrize(
    ("page", "first_names", "count"),
    [
        (RowPage("", "depth", True, 0, 2), [["P/S/Q0714", "P/S/Q1428"][0]], 5000),
        (RowPage("", "name", False, 0, 2), ["P/S/Q0000", "P/S/Q0001"], 5000),
        (RowPage("", "name", True, 0, 1), ["P/S/Q4999"], 5000),
        (RowPage("q004", "name", False, 0, 50), ["P/S/Q0040", "P/S/Q0041"], 10),
        (RowPage("*Q00?0", "name", False, 5, 5), ["P/S/Q0050"], 10),
        (RowPage("", "name", False, 10**6, 50), ["P/S/Q4950"], 5000),
        (RowPage("", "role", True, 0, 1), ["P/S/Q0001"], 5000),
        (RowPage("", "no such figure", True, 0, 1), ["P/S/Q0000"], 5000),
        (RowPage("nothing", "depth", True, 0, 50), [], 0),
    ],
)
def test_a_page_of_thousands_is_filtered_and_sorted(page: RowPage, first_names: list[str], count: int) -> None:
    if page.sort == "depth" and not page.filter:
        first_names = [max(ROWS, key=lambda row: int(str(row["depth"])))["name"]]  # type: ignore[list-item]
    rows, found = page.of(ROWS)
    assert [row["name"] for row in rows][: len(first_names)] == first_names
    assert found == count
    assert len(rows) <= page.count


def test_a_queue_made_again_begins_a_new_history() -> None:
    history = History()
    key = ("", "Orders")
    for depth in (1, 2):
        history.add([{"name": "Orders", "depth": depth, "dead": 5}])
    history.add([])  # it was away for a look
    history.add([{"name": "Orders", "depth": 3, "dead": 5}])
    assert history.of(key).last("depth", 9) == [3]  # type: ignore[union-attr]
    history.add([{"name": "Orders", "depth": 4, "dead": 0}])  # its counters went back: deleted and made between looks
    assert history.of(key).last("depth", 9) == [4]  # type: ignore[union-attr]
    history.add([{"name": "Orders", "depth": 5, "dead": 1}])
    assert history.of(key).last("depth", 9) == [4, 5]  # type: ignore[union-attr]


@pytest.mark.slow
def test_histories_are_bounded_for_few_rows_and_for_many() -> None:
    ring = FigureRing(["depth"], POINTS_MAX)
    for at in range(3 * POINTS_MAX):
        ring.add({"depth": at})
    assert len(ring.values["depth"]) < 2 * POINTS_MAX
    assert ring.last("depth", 10**6) == [float(at) for at in range(2 * POINTS_MAX, 3 * POINTS_MAX)]
    history = History()
    for _ in range(2 * SPARK_POINTS):
        history.add(ROWS)
    kept = [history.of(("", str(row["name"]))) for row in ROWS]
    assert sum(len(values) for ring in kept if ring for values in ring.values.values()) <= CELLS_MAX
    assert all(len(ring.last("depth", SPARK_POINTS)) == SPARK_POINTS for ring in kept if ring)


def test_a_gap_is_no_figure_in_the_document() -> None:
    ring = FigureRing(SERIES, 5)
    ring.add({"depth": 1})
    ring.add({})
    assert math.isnan(ring.values["depth"][1])
    assert json.dumps(ring.last("depth", 5)) == "[1.0, null]"
