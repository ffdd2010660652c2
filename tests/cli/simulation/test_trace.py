"""`qsctl trace`: rates of a Prometheus server become arrivals; and servers that answer anything."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest

from qsctl.errors import ExitStatus
from qsctl.sim.arrivals.from_rates import trace_of_rates
from qsctl.sim.arrivals.trace import read_trace
from tests import broker_server as b
from tests.cli.shell import Shell

TOKEN = "t0k3n-of-prom"


class Prometheus:
    """A range of two series: 100/s, and 0, 200, NaN, … a second."""

    def __init__(self, server: b.BrokerServer) -> None:
        self.server = server
        self.asked: dict[str, list[str]] = {}
        self.document: Any = None

    def __call__(self, request: Any) -> None:
        self.asked = parse_qs(self.server.bodies[-1].decode())
        start, end, step = (float(self.asked[name][0]) for name in ("start", "end", "step"))
        times = np.arange(start, end + step / 2, step)
        quick = [[float(at), "100"] for at in times]
        slow = [[float(at), text] for at, text in zip(times, ("0", "200", "NaN", "-1"), strict=False)]
        result = [{"metric": {"client": "b"}, "values": slow}, {"metric": {"client": "a"}, "values": quick}]
        b.answer(
            request, 200, self.document or {"status": "success", "data": {"resultType": "matrix", "result": result}}
        )


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    with b.serving() as server:
        made = Prometheus(server)
        server.always = made
        yield made


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path / "state")


def test_rates_of_a_range_become_a_trace_that_a_scenario_reads(
    prometheus: Prometheus, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QSCTL_PROMETHEUS_TOKEN", TOKEN)
    monkeypatch.setenv("QSCTL_BROKER_USERNAME", "ops")
    words = ("trace", "rate(x[1m])", "--prometheus", prometheus.server.url, "--last", "1min", "--step", "10s")
    words = (*words, "--until", "2026-11-26T15:00:00Z")
    done = shell(*words, "--message-size", "700", "--out", "load.csv", "-o", "json")
    assert done.status == 0, done.err
    assert "2 values are not rates" in done.err
    assert TOKEN not in done.out + done.err
    assert prometheus.server.headers[-1]["Authorization"] == f"Bearer {TOKEN}", (
        "a broker's credentials are for a broker"
    )
    assert (prometheus.asked["query"], prometheus.asked["step"]) == (["rate(x[1m])"], ["10"])
    assert [(each["series"], each["mean_per_second"]) for each in done.document["clients"]] == [
        ("client=a", 100.0), ("client=b", pytest.approx(200 / 6)),
    ]  # fmt: skip
    rows = read_trace(Path("load.csv"), 2)
    assert len(rows) == done.document["messages"]
    assert set(rows["bytes"].tolist()) == {700}
    second = rows["time"][rows["client"] == 1]
    assert 10e9 <= second.min() <= second.max() < 20e9
    assert abs(len(second) - 2000) < 6 * math.sqrt(2000)
    Path("s.xml").write_text(
        '<scenario name="s" horizon="60s"><port name="p1"/><profile name="p"/><group name="g" count="2" port="p1" '
        'profile="p"/><traffic name="t" to="g"><trace file="load.csv"/></traffic></scenario>'
    )
    assert shell("simulate", "s.xml", "--level", "counters").status == 0
    assert shell(*words, "--out", "load.csv").status == ExitStatus.USAGE
    assert "client=a" in shell(*words).out


def test_the_same_seed_gives_the_same_trace() -> None:
    rates = [[5.0, 50.0]]
    first, again, other = (trace_of_rates(rates, 1.0, 100, seed) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.column_names == ["time_ns", "size_bytes"]
    assert trace_of_rates([[0.0]], 1.0, 100, 1).num_rows == 0


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"<html>", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        ({"data": {"resultType": "vector", "result": []}}, "not the matrix"),
        ({"data": 3}, "not the matrix"),
        ({"data": {"resultType": "matrix", "result": [1]}}, "not an object"),
        ({"data": {"resultType": "matrix", "result": [{"values": 1}]}}, "no list of values"),
        ({"data": {"resultType": "matrix", "result": [{"values": [[1]]}]}}, "not a pair"),
        ({"data": {"resultType": "matrix", "result": [{"values": [["x", "1"]]}]}}, "not a pair"),
        ({"data": {"resultType": "matrix", "result": [{"values": [[float("inf"), "1"]]}]}}, "not a number"),
        ({"data": {"resultType": "matrix", "result": []}}, "has no series"),
        ({"data": {"resultType": "matrix", "result": [{}] * 10_001}}, "10,001 series"),
    ],
    ids=["html", "deep", "vector", "number", "series", "values", "pair", "time", "infinite", "none", "many"],
)
def test_a_reply_that_is_none_is_one_error(prometheus: Prometheus, shell: Shell, document: Any, words: str) -> None:
    prometheus.document = document
    done = shell("trace", "x", "--prometheus", prometheus.server.url, "--last", "1min")
    assert (done.status in {1, 4}, words in done.err) == (True, True), done.err


def test_a_refusal_is_shown_in_the_server_s_words(prometheus: Prometheus, shell: Shell) -> None:
    prometheus.server.always = lambda request: b.answer(
        request, 400, {"status": "error", "error": "parse error at char 3"}
    )
    done = shell("trace", "x{", "--prometheus", prometheus.server.url)
    assert (done.status, "parse error at char 3" in done.err) == (ExitStatus.REFUSED, True)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--step", "2h"), "is not between"),
        (("--step", "0s"), "is not between"),
        (("--until", "yesterday"), "is not an instant"),
        (("--until", "2026-11-26T15:00:00"), "is not an instant"),
        (("--last", "10d", "--step", "1s"), "864,000 values"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_one_error(shell: Shell, words: tuple[str, ...], text: str) -> None:
    done = shell("trace", "x", "--prometheus", "http://127.0.0.1:1", *words)
    assert text in done.err


def test_more_messages_than_a_trace_has_are_refused(prometheus: Prometheus, shell: Shell) -> None:
    prometheus.document = {
        "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[0, "1e300"]]}]}, "status": "success",
    }  # fmt: skip
    done = shell(
        "trace", "x", "--prometheus", prometheus.server.url, "--until", "1970-01-01T01:00:00Z", "--out", "t.csv"
    )
    assert "messages" in done.err
    assert not Path("t.csv").exists()


def exported(*series: tuple[str, list[tuple[float, str]]]) -> dict[str, Any]:
    result = [
        {"metric": {"__name__": name, "client": str(number)}, "values": [[at, text] for at, text in values]}
        for number, (name, values) in enumerate(series)
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_an_exported_range_becomes_a_trace(shell: Shell) -> None:
    values = [(1000.0 + 15 * number, "40") for number in range(20)]
    document = exported(("rate", values), ("rate", [(at, "NaN" if at == 1015 else "10") for at, _ in values]))
    for number, text in enumerate((document, document["data"], document["data"]["result"])):
        Path("range.json").write_text(json.dumps(text))
        made = shell("trace", "--from", "range.json", "--out", f"load{number}.csv", "-o", "json")
        assert (made.status, "1 values are not rates" in made.err) == (0, True)
        assert made.document["step_seconds"] == 15
        assert [row["mean_per_second"] for row in made.document["clients"]] == [40, 9.5]
    rows = read_trace(Path("load0.csv"), 2)
    assert len(rows) == made.document["messages"]
    assert abs(len(rows) - 20 * 15 * 49.5) < 6 * math.sqrt(20 * 15 * 49.5)


def test_counters_of_a_file_become_rates(shell: Shell) -> None:
    # 30 a step, a gap of two steps with the same rate, then a counter that went back to 45
    counter = [(0.0, "100"), (15.0, "130"), (60.0, "220"), (75.0, "45")]
    Path("range.json").write_text(json.dumps(exported(("sent_total", counter), ("rate", [(0.0, "7"), (15.0, "8")]))))
    made = shell("trace", "--from", "range.json", "-o", "json").document
    assert [row["mean_per_second"] for row in made["clients"]] == [(4 * 2 + 3) / 5, 8 / 5]
    assert [row["peak_per_second"] for row in made["clients"]] == [3, 8]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"), ("[" * 100_000, "not valid JSON"),
        ("{}", "not the matrix"), ("[1]", "not an object"), ("[]", "no series"),
        ('[{"values": 5}]', "no list of values"), ('[{"values": [[1]]}]', "not a pair"),
        ('[{"values": [[1, "2"]]}]', "one instant"), ('[{"values": [[NaN, "2"]]}]', "not a number"),
        ('[{"values": [[0, "2"], [0.01, "2"], [1e9, "2"]]}]', "too many steps"),
        ('{"data": {"resultType": "vector", "result": []}}', "not the matrix"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_range_is_one_error(shell: Shell, text: str, words: str) -> None:
    Path("range.json").write_text(text)
    refused = shell("trace", "--from", "range.json")
    assert refused.status in {ExitStatus.NO, ExitStatus.NOT_FOUND}
    assert words in refused.err
    assert "range.json" in refused.err


def test_a_trace_is_of_a_query_or_of_a_file(shell: Shell) -> None:
    Path("range.json").write_text("[]")
    for words in ((), ("rate(x[1m])",), ("rate(x[1m])", "--from", "range.json"), ("--prometheus", "http://127.0.0.1")):
        assert shell("trace", *words).status == ExitStatus.USAGE
    assert shell("trace", "--from", "none.json").status == ExitStatus.NOT_FOUND
