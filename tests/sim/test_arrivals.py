"""Arrivals: reproducible, independent of everything else, distributed as asked, merged in time order."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.errors import InvalidInput, NotFound
from qsctl.eventlog import schema
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.arrivals.streams import ArrivalStreams, zipf_shares
from qsctl.sim.arrivals.trace import read_trace
from qsctl.sim.kernel.histogram import bucket_of
from qsctl.sim.kernel.random import exponential, logarithm, uniform, uniform_bits
from qsctl.sim.scenario.scenario import (
    Arrivals,
    ClientGroup,
    ConstantArrivals,
    ConstantSize,
    LognormalSize,
    MixedSize,
    MmppArrivals,
    OnOffArrivals,
    PoissonArrivals,
    Port,
    Profile,
    Scenario,
    TraceArrivals,
    Traffic,
    UniformSize,
)


def scenario(*traffic: Traffic, clients: int = 1, seconds: int = 100, seed: int = 1) -> Scenario:
    return Scenario(
        "arrivals", seed=seed, horizon_ns=seconds * SECOND_NS, ports=(Port("p"),), profiles=(Profile("d"),),
        groups=(ClientGroup("g", "p", "d", count=clients),), traffic=traffic,
    )  # fmt: skip


def rows(given_scenario: Scenario, replication: int = 0) -> Any:
    streams = ArrivalStreams(given_scenario, replication)
    found = []
    while streams.now_ns < given_scenario.horizon_ns:
        found.append(streams.window(given_scenario.horizon_ns).copy())
    return np.concatenate(found)


@given(st.integers(0, 2**62))
def test_the_kernels_buckets_are_the_event_logs(duration: int) -> None:
    assert bucket_of(duration) == schema.bucket_of(duration)


@given(st.floats(1e-300, 1e300))
def test_our_logarithm_is_the_logarithm(x: float) -> None:
    assert logarithm(x) == pytest.approx(math.log(x), rel=1e-14, abs=1e-15)


@given(st.floats(-600, 600))
def test_our_exponential_is_the_exponential(x: float) -> None:
    assert exponential(x) == pytest.approx(math.exp(x), rel=1e-12)


def test_the_generator_draws_these_bits_on_every_machine() -> None:
    key = np.uint64(0)
    assert [int(uniform_bits(key, n)) for n in range(3)] == [
        0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F
    ]  # fmt: skip
    assert uniform(key, 0) == pytest.approx(0xE220A8397B1DCDAF / 2**64)


def test_poisson_gaps_are_exponential() -> None:
    gaps = np.diff(rows(scenario(Traffic("t", "g", PoissonArrivals(10_000.0))))["time"])
    assert gaps.mean() == pytest.approx(1e5, rel=0.005)
    assert gaps.std() == pytest.approx(1e5, rel=0.01)
    assert (gaps > 2e5).mean() == pytest.approx(math.exp(-2), rel=0.02)


def test_constant_gaps_are_equal_and_a_groups_clients_are_spread_over_the_first() -> None:
    found = rows(scenario(Traffic("t", "g", ConstantArrivals(1000.0)), clients=4, seconds=1))
    assert len(found) == 4000
    assert set(np.diff(found["time"])) == {MILLISECOND_NS // 4}
    assert list(found["client"][:4]) == [0, 1, 2, 3]


def test_fixed_bursts_are_silent_between() -> None:
    burst = OnOffArrivals(10_000.0, on_ns=SECOND_NS, off_ns=3 * SECOND_NS, fixed=True)
    times = rows(scenario(Traffic("t", "g", burst), seconds=40))["time"]
    assert ((times % (4 * SECOND_NS)) < SECOND_NS).all()
    assert len(times) == pytest.approx(100_000, rel=0.02)


def test_exponential_bursts_and_modulated_rates_have_the_mean_rate() -> None:
    burst = OnOffArrivals(1000.0, on_ns=100 * MILLISECOND_NS, off_ns=300 * MILLISECOND_NS)
    assert len(rows(scenario(Traffic("t", "g", burst), seconds=2000))) == pytest.approx(500_000, rel=0.06)
    rates = MmppArrivals((100.0, 1000.0, 0.0), (100 * MILLISECOND_NS, 200 * MILLISECOND_NS, 100 * MILLISECOND_NS))
    expected = 2000 * (100 * 0.1 + 1000 * 0.2) / 0.4
    assert len(rows(scenario(Traffic("t", "g", rates), seconds=2000))) == pytest.approx(expected, rel=0.06)


def test_the_states_of_a_cycle_follow_each_other_each_for_exactly_its_stay() -> None:
    rates, stays = (20.0, 0.0, 100.0), (3 * SECOND_NS, 2 * SECOND_NS, SECOND_NS)
    times = rows(scenario(Traffic("t", "g", MmppArrivals(rates, stays, cycle=True)), seconds=3000))["time"]
    counts = np.bincount((times % (6 * SECOND_NS)) // SECOND_NS, minlength=6) / 500
    assert counts == pytest.approx(np.array([20, 20, 20, 0, 0, 100]), rel=0.03)


def test_sizes_follow_their_distributions() -> None:
    def sizes(size: Any) -> Any:
        return rows(scenario(Traffic("t", "g", ConstantArrivals(1000.0), size=size)))["bytes"]

    assert set(sizes(ConstantSize(7))) == {7}
    uniform_sizes = sizes(UniformSize(10, 13))
    assert set(uniform_sizes) == {10, 11, 12, 13}
    assert uniform_sizes.mean() == pytest.approx(11.5, rel=0.01)
    lognormal = sizes(LognormalSize(1000, 0.5, 3000))
    assert np.median(lognormal) == pytest.approx(1000, rel=0.02)
    assert np.log(lognormal[lognormal < 3000]).std() == pytest.approx(0.5, rel=0.05)
    assert lognormal.max() == 3000
    mixed = sizes(MixedSize((5, 9), (3.0, 1.0)))
    assert (mixed == 5).mean() == pytest.approx(0.75, rel=0.02)


def test_topics_are_skewed_by_zipf_s_law() -> None:
    traffic = Traffic("t", "g", ConstantArrivals(1000.0), topics=4, topic_skew=1.0)
    counts = np.bincount(rows(scenario(traffic))["topic"])
    assert counts / counts.sum() == pytest.approx(np.array([12, 6, 4, 3]) / 25, rel=0.03)
    assert zipf_shares(4, 0.0) == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_a_fan_out_reaches_every_client_at_once() -> None:
    found = rows(scenario(Traffic("t", "g", PoissonArrivals(10.0), fan_out=True), clients=5))
    assert len(found) % 5 == 0
    assert (found["client"].reshape(-1, 5) == np.arange(5)).all()
    assert (found["time"].reshape(-1, 5) == found["time"][::5, None]).all()


def test_streams_are_merged_by_time_and_ties_keep_the_order_of_the_streams() -> None:
    traffic = [Traffic(f"t{i}", "g", ConstantArrivals(rate)) for i, rate in enumerate((100.0, 200.0, 400.0))]
    found = rows(scenario(*traffic, clients=3, seconds=10))
    assert (np.diff(found["time"]) >= 0).all()
    same = np.flatnonzero(np.diff(found["time"]) == 0)
    order = (found["tag"] >> 8).astype(np.int64) * 3 + found["client"]
    assert len(same) and (order[same] < order[same + 1]).all()


@pytest.mark.parametrize("width", [1_000_003, 77_777_777, 10 * SECOND_NS])
def test_how_time_is_cut_into_windows_changes_nothing(width: int) -> None:
    made = scenario(Traffic("t", "g", PoissonArrivals(50.0), topics=3), clients=3, seconds=20)
    streams = ArrivalStreams(made, 0)
    found, until = [], 0
    while streams.now_ns < made.horizon_ns:
        until = min(until + width, made.horizon_ns)
        while streams.now_ns < until:
            found.append(streams.window(until).copy())
    assert (np.concatenate(found) == rows(made)).all()


def test_common_random_numbers_hold_whatever_changes_elsewhere() -> None:
    base = scenario(Traffic("t", "g", PoissonArrivals(100.0), size=UniformSize(1, 100)), clients=3)
    other = replace(
        base,
        groups=(ClientGroup("new", "p", "d", count=2), *base.groups),
        traffic=(Traffic("noise", "new", PoissonArrivals(50.0)), *base.traffic),
    )
    mine = rows(base)
    theirs = rows(other)
    theirs = theirs[theirs["tag"] >> 8 == 1]
    assert (mine["time"] == theirs["time"]).all()
    assert (mine["bytes"] == theirs["bytes"]).all()
    assert (mine["client"] + 2 == theirs["client"]).all()


def test_seed_and_replication_each_change_the_draws() -> None:
    made = scenario(Traffic("t", "g", PoissonArrivals(100.0)), seconds=1)
    first = set(rows(made)["time"])
    assert len(first & set(rows(made, replication=1)["time"])) < 3
    assert len(first & set(rows(replace(made, seed=2))["time"])) < 3
    assert first == set(rows(made)["time"])


def test_a_trace_is_read_from_csv_and_from_parquet_alike(tmp_path: Path) -> None:
    table = pa.table(
        {"time_ns": [0, 5, 5], "size_bytes": [1, 2, 3], "client": [0, 1, 0], "queue": ["D-1", "C-1", "G-1"]}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("time_ns,size_bytes,client,queue\n0,1,0,D-1\n5,2,1,C-1\n5,3,0,G-1\n")
    first, second = (
        rows(scenario(Traffic("t", "g", TraceArrivals(str(tmp_path / name)), start_ns=100), clients=2, seconds=1))
        for name in ("t.csv", "t.parquet")
    )
    assert (first == second).all()
    assert list(first["time"]) == [100, 105, 105]
    assert list(first["client"]) == [0, 1, 0]
    assert list(first["tag"] & 7) == [1, 4, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_ns,bytes\n1,2\n", "no column size_bytes; it has time_ns, bytes"),
        ("", "the trace is empty"),
        ("\n\n", "the trace is empty"),
        ("time_ns,size_bytes,time_ns\n1,1,1\n", "line 1: the column time_ns occurs 2 times: columns 1 and 3"),
        ("time_ns,size_bytes\n5,1\n\n4,1\n", "line 4: time_ns 4 is before the row above, 5"),
        ("time_ns,size_bytes\n1,0\n", "line 2: size_bytes 0 is not between 1"),
        ("time_ns,size_bytes,client\n1,1,2\n", "line 2: client 2 is not between 0 and 1"),
        ("time_ns,size_bytes,queue\n1,1,D-9\n", "line 2: the queue 'D-9' is not one of G-1"),
        ("time_ns,size_bytes\n1.5,1\n", "line 2: time_ns '1.5' is not a whole number of at most 64 bits"),
        ("time_ns,size_bytes\n,1\n2,2\n", "line 2: time_ns is empty"),
        ("time_ns,size_bytes\n1,1\n1\n", "line 3 has 1 cells; the header has 2 columns"),
        ("time_ns,size_bytes\n1,1\n1,1,1\n", "line 3 has 3 cells; the header has 2 columns"),
        ("time_ns,size_bytes\n0,1\nNaN,1\n", "line 3: time_ns 'NaN' is not a whole number"),
        ("time_ns,size_bytes\n0,1\n1e5,1\n", "line 3: time_ns '1e5' is not a whole number"),
        ("time_ns,size_bytes\n0,1\n-3,1\n", "line 3: time_ns -3 is not between 0 and"),
        (f"time_ns,size_bytes\n0,1\n{10**19},1\n", f"line 3: time_ns '{10**19}' is not a whole number of at most 64"),
        (f"time_ns,size_bytes\n0,1\n1,{10**18}\n", f"line 3: size_bytes {10**18} is not between 1 and"),
        pytest.param("time_ns,size_bytes\n0,1\n" + "9" * 5000 + ",1\n", "line 3: time_ns '999", id="long number"),
        ("time_ns,size_bytes,queue\n1,1,\n", "line 2: the queue is empty"),
        pytest.param("time_ns,size_bytes,queue\n1,1,D-1\n1,1," + "q" * 5000, "line 3: the queue 'qqq", id="long queue"),
        ("time_ns,size_bytes,queue\n1,1,7\n", "line 2: the queue '7' is not one of G-1, .*, or 0 to 4"),
        (b"time_ns,size_bytes,queue\n1,1,D-1\n1,1,\xff\n", r"line 3: the queue '\\\\xff' is not one of"),
        (b"time_ns,size_bytes,qu\xffeue\n1,1,D-1\n", "line 1: byte 22 of the header, 0xff, is not UTF-8"),
        (b"\xff\xfet\x00i\x00", "line 1: byte 1 of the header, 0xff, is not UTF-8"),
        (b"time_ns,size_bytes\n\x00,1\n", "line 2: time_ns"),
        pytest.param("a" * (1 << 21), "line 1: the header is not CSV: field larger", id="long header"),
    ],
)
def test_a_bad_trace_is_one_clear_error(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidInput, match=message) as caught:
        read_trace(path, 2)
    assert caught.value.remedy
    assert str(path) in caught.value.message
    assert len(caught.value.message) < 1000
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.Table.from_arrays([pa.array([1])] * 3, names=["time_ns", "size_bytes", "time_ns"]), "occurs 2 times"),
        (pa.table({"time_ns": [1.5], "size_bytes": [1]}), "column time_ns holds double values"),
        (
            pa.table({"time_ns": pa.array([2**64 - 1], pa.uint64()), "size_bytes": [1]}),
            "row 1: time_ns 18446744073709551615 ",
        ),
        (pa.table({"time_ns": [1], "size_bytes": [1], "queue": [b"D-1"]}), "column queue holds binary values"),
        (pa.table({"time_ns": [1, 2], "size_bytes": [1, None]}), "row 2: size_bytes is empty"),
        (pa.table({"time_ns": [1, 2], "size_bytes": [1, 1], "queue": ["D-1", None]}), "row 2: the queue is empty"),
        (pa.table({"a": [1]}), "no column time_ns and size_bytes; it has a"),
        (None, "cannot be read as a trace"),
    ],
)
def test_a_bad_parquet_trace_is_one_clear_error(tmp_path: Path, table: pa.Table | None, message: str) -> None:
    path = tmp_path / "bad.parquet"
    if table is None:
        path.write_bytes(b"PAR1PAR1")
    else:
        pq.write_table(table, path)
    with pytest.raises(InvalidInput, match=message) as caught:
        read_trace(path, 2)
    assert caught.value.remedy


def test_a_parquet_trace_whose_rows_have_values_that_are_not_there_is_one_error() -> None:
    path = Path(__file__).parents[1] / "fuzz" / "corpus" / "trace_files" / "index_without_value.parquet"
    with pytest.raises(InvalidInput, match="out of bounds"):
        read_trace(path, 1)


def test_a_parquet_trace_in_a_folder_that_looks_like_a_partition_has_its_own_columns_only(tmp_path: Path) -> None:
    folder = tmp_path / "client=7"
    folder.mkdir()
    pq.write_table(pa.table({"time_ns": [1], "size_bytes": [1]}), folder / "t.parquet")
    assert list(read_trace(folder / "t.parquet", 1)["client"]) == [-1]


@pytest.mark.parametrize("text", ["time_ns,size_bytes\n", "\ufefftime_ns,size_bytes\r\n", "time_ns,size_bytes"])
def test_a_trace_of_a_header_alone_has_no_arrivals(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert len(read_trace(tmp_path / "t.csv", 1)) == 0
    made = scenario(Traffic("t", "g", TraceArrivals(str(tmp_path / "t.csv"))), seconds=1)
    assert len(rows(made)) == 0


@pytest.mark.parametrize("name", ["none.csv", "n" * 300 + ".csv", "a\0b.csv"])
def test_a_missing_trace_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound, match="no such trace"):
        read_trace(tmp_path / name, 1)


@pytest.mark.parametrize(
    ("arrivals", "size", "message"),
    [
        (PoissonArrivals(0.0), ConstantSize(1), "rate of 0.0"),
        (PoissonArrivals(1.0), ConstantSize(0), "at least 1 byte"),
        (PoissonArrivals(1.0), UniformSize(5, 4), "at least 1 byte"),
        (PoissonArrivals(1.0), MixedSize((1, 2), (1.0,)), "at least 1 byte"),
        (MmppArrivals((1.0,), (1, 2)), ConstantSize(1), "describe no arrivals"),
    ],
)
def test_arrivals_that_cannot_be_are_refused(arrivals: Arrivals, size: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ArrivalStreams(scenario(Traffic("t", "g", arrivals, size=size)), 0)


def test_traffic_without_receivers_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the groups are: g"):
        ArrivalStreams(scenario(Traffic("t", "h", PoissonArrivals(1.0))), 0)


def test_normal_draws_are_normal_in_the_middle_and_in_the_tail() -> None:
    sizes = rows(scenario(Traffic("t", "g", ConstantArrivals(20_000.0), size=LognormalSize(10**6, 0.5, 10**8))))
    drawn = np.sort((np.log(sizes["bytes"]) - math.log(10**6)) / 0.5)
    expected = np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in drawn[::100]])
    reached = (np.arange(len(drawn))[::100] + 0.5) / len(drawn)
    assert np.abs(expected - reached).max() < 1.63 / math.sqrt(len(drawn))  # Kolmogorov and Smirnov, at 1 %
    assert (drawn**4).mean() == pytest.approx(3.0, rel=0.03)
    beyond = 0.5 * math.erfc(3.6541528853610088 / math.sqrt(2.0)) * len(drawn)
    for tail in ((drawn > 3.6541528853610088).sum(), (drawn < -3.6541528853610088).sum()):
        assert abs(tail - beyond) < 4.0 * math.sqrt(beyond)
    in_order = np.log(sizes["bytes"]) - math.log(10**6)
    assert abs(np.corrcoef(in_order[1:], in_order[:-1])[0, 1]) < 4.0 / math.sqrt(len(drawn))


def test_windows_whose_arrivals_all_come_in_one_span_are_in_order() -> None:
    burst = OnOffArrivals(10_000_000.0, on_ns=100_000, off_ns=10 * SECOND_NS, fixed=True)
    found = rows(scenario(Traffic("t", "g", burst), clients=50, seconds=25))
    assert len(found) > 50 * 2000
    assert (np.diff(found["time"]) >= 0).all()
