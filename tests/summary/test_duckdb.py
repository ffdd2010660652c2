"""Every figure against DuckDB on the same Parquet files: all measures, groupings and windows varied."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from qsctl.eventlog.schema import LogLevel, bucket_of
from qsctl.instant import SECOND_NS
from qsctl.sim.done_times import PERCENTILES, DoneTimes
from qsctl.sim.run import RunReport, run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Model, Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario, ready_scenarios
from qsctl.summary import job
from qsctl.summary.measures import tables
from qsctl.summary.run_summary import COUNTS, RunSummary
from qsctl.summary.spark.session import SparkOptions

pytest.importorskip("duckdb", reason="figures are recomputed where duckdb is installed")

from tests.campaigns import is_campaign
from tests.summary import recomputed

EVERYTHING = is_campaign()
HORIZONS_NS = {
    "shared-reader-queue": 3 * SECOND_NS,
    "world": 3 * SECOND_NS,
    "guaranteed": 6 * SECOND_NS,
    "work-queue": 6 * 3600 * SECOND_NS,
    "fan-out-10000": SECOND_NS // 20,
}
BY = (("client", "queue"), ("queue", "replication"), ("queue", "topic"), ("client",))
WINDOWS_NS = (SECOND_NS, 100_000_000, 7_000_000)
USUAL = ("guaranteed", "shared-reader-queue", "burst")
"""What every run of the suite looks at; all ready scenarios with every grouping at night."""

CASES = (
    [(name, by, WINDOWS_NS[at % 3]) for name in ready_scenarios() for at, by in enumerate(BY)]
    if EVERYTHING
    else [(name, BY[at], WINDOWS_NS[at]) for at, name in enumerate(USUAL)]
)
FROM_THE_LOG = [name for name in COUNTS if name != "evicted_messages"]


def short(name: str) -> Scenario:
    scenario = read_scenario(find_scenario(name))
    horizon_ns = min(scenario.horizon_ns, HORIZONS_NS.get(name, SECOND_NS // 4))
    if scenario.world is not None:
        scenario = dataclasses.replace(
            scenario, world=dataclasses.replace(scenario.world, recovery_ns=horizon_ns // 8, faults=None)
        )
    changed = {"group[*]/count": "2", "profile[*]/guaranteed-overflow": "hold"} if name == "guaranteed" else {}
    scenario = apply_overrides(scenario, changed)
    return dataclasses.replace(scenario, horizon_ns=horizon_ns, warm_up_ns=horizon_ns // 3, replications=2)


def held(scenario: Scenario) -> str:
    """Which queues keep a message until it is acknowledged; in these scenarios every G-1 does."""
    if scenario.model in {Model.SHARED_READER_QUEUE, Model.WORLD, Model.QUEUE}:
        return "true"
    return "queue = 'G-1'" if scenario.model is Model.SOLACE else "false"


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("name", "by", "window_ns"), CASES, ids=lambda value: value if isinstance(value, str) else None
)
def test_every_figure_is_what_duckdb_makes_of_the_same_files(
    name: str, by: tuple[str, ...], window_ns: int, tmp_path: Path, computed: SparkOptions | None
) -> None:
    scenario = short(name)
    report = run(scenario, tmp_path / "run", level=LogLevel.MESSAGES)
    names = {row["client_id"]: row["client"] for row in report.counters.to_pylist()}
    summary = job.summarize_run(tmp_path / "run", by=by, window_ns=window_ns, measures=job.ALL, options=computed)
    log = recomputed.open_log(tmp_path / "run", scenario.warm_up_ns, scenario.horizon_ns, held(scenario))
    check_figures(summary, log, by, names)
    check_series(summary, log, by, window_ns, names)
    check_law(summary, log, by, names)
    if scenario.model is not Model.INTEGRATION:  # there, what was written and not acknowledged has another row
        check_done(summary, log, by, names, acknowledged(scenario))
    check_slow(summary, log, by, names)
    check_intervals(summary, report, by)


CONNECTIONS = {
    "dead-messages": {
        "horizon": "2s", "group[worker]/loss": "0.05", "durable-queue[work]/flow[*]/rejects": "0.1",
        "durable-queue[work]/flow[*]/fails": "0.5", "durable-queue[work]/max-redelivery": "1",
    },
    "slow-subscriber": {"horizon": "42s", "warm-up": "5s"},
}  # fmt: skip
SEEN = {
    "dead-messages": {
        "blocked_ns", "retransmissions", "time_outs", "expired_to_dmq_messages", "redelivered_to_dmq_messages",
        "rejected_to_dmq_messages",
    },
    "slow-subscriber": {"blocked_ns", "slow_periods", "first_slow_ns", "disconnections"},
}  # fmt: skip


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("name", "by"), [("dead-messages", ("client", "queue")), ("slow-subscriber", ("queue",))])
def test_connections_and_losses_by_cause_are_what_duckdb_makes_of_the_same_files(
    name: str, by: tuple[str, ...], tmp_path: Path, computed: SparkOptions | None
) -> None:
    scenario = apply_overrides(read_scenario(find_scenario(name)), CONNECTIONS[name])
    report = run(scenario, tmp_path / "run", level=LogLevel.EVENTS)
    names = {row["client_id"]: row["client"] for row in report.counters.to_pylist()}
    log = recomputed.open_log(tmp_path / "run", scenario.warm_up_ns, scenario.horizon_ns, held(scenario))
    summary = job.summarize_run(tmp_path / "run", by=by, measures={"connections", "losses"}, options=computed)
    check_figures(summary, log, by, names)
    keys = columns_of([word for word in by if word == "client"], "replication")
    rows = summary.tables["connections"]
    words = {column for column, _ in tables.KEYS.values()}
    values = [field.name for field in tables.CONNECTIONS.fields if field.name not in words]
    expected = keyed(recomputed.connections(tmp_path / "run", log, by), keys, names)
    assert {key: [row[value] for value in values] for key, row in keyed(rows, keys, names).items()} == {
        key: [row[value] for value in values] for key, row in expected.items()
    }
    assert {value for value in values if any(row[value] for row in rows)} == SEEN[name]
    assert (name == "dead-messages") == any(each.rejected_messages for each in summary.queues)


def keyed(rows: Iterable[Any], columns: Sequence[str], names: dict[int, str]) -> dict[tuple[Any, ...], Any]:
    """Rows by their key; DuckDB's tell a client by its number."""
    found = {}
    for row in rows:
        get = row.get if isinstance(row, dict) else lambda column, row=row: getattr(row, column)
        key = tuple(
            names.get(get("client_id"), str(get("client_id"))) if column == "client" and isinstance(row, dict)
            and "client_id" in row else get(column)
            for column in columns
        )  # fmt: skip
        assert key not in found, key
        found[key] = row
    return found


def columns_of(by: Sequence[str], *more: str) -> list[str]:
    return list(dict.fromkeys([*("topic_id" if word == "topic" else word for word in by), *more]))


def check_figures(summary: RunSummary, log: Any, by: Sequence[str], names: dict[int, str]) -> None:
    found = keyed(summary.queues, columns_of(by), names)
    expected = keyed(recomputed.figures(log, by), columns_of(by), names)
    assert expected.keys() <= found.keys()
    for key, figures in found.items():
        if key not in expected:  # a queue that no message met
            assert not any(getattr(figures, name) for name in FROM_THE_LOG), key
            continue
        row = expected[key]
        for name in (*FROM_THE_LOG, "wait_max_ns", "first_discard_ns"):
            assert getattr(figures, name) == row[name], (key, name)
        ranks = [getattr(figures, f"wait_p{rank}_ns") for rank in (50, 90, 95, 99, 999)]
        assert ranks == (row["ranks"] or [None] * 5), key
        assert figures.wait_mean_ns == pytest.approx(row["wait_mean_ns"], rel=1e-12)
    losses = keyed(summary.tables["losses"], columns_of(by), names)
    assert {key: row["loss_ratio"] for key, row in losses.items()} == {
        key: pytest.approx(figures.loss_ratio) for key, figures in found.items()
    }


def check_series(summary: RunSummary, log: Any, by: Sequence[str], window_ns: int, names: dict[int, str]) -> None:
    for table, expected, at in (
        ("windows", recomputed.windows(log, by, window_ns), "window_start_ns"),
        ("depth", recomputed.depth(log, by, window_ns), "at_ns"),
    ):
        found = keyed(summary.tables[table], columns_of(by, "replication", at), names)
        wanted = keyed(expected, columns_of(by, "replication", at), names)
        assert found.keys() == wanted.keys(), table
        for key, row in wanted.items():
            counted = {name: value for name, value in row.items() if name.endswith(("messages", "units", "bytes"))}
            assert {name: found[key][name] for name in counted} == counted, (table, key)


def check_law(summary: RunSummary, log: Any, by: Sequence[str], names: dict[int, str]) -> None:
    found = keyed(summary.tables["littles_law"], columns_of(by), names)
    wanted = keyed(recomputed.littles_law(log, by), columns_of(by), names)
    assert found.keys() >= wanted.keys()
    for key in found.keys() - wanted.keys():  # nothing entered the queue, and something waits for it
        assert (found[key]["mean_depth_messages"], found[key]["arrivals_per_second"]) == (0.0, 0.0)
    for key, row in wanted.items():
        for name in ("mean_depth_messages", "arrivals_per_second", "mean_wait_ns"):
            assert found[key][name] == pytest.approx(row[name], rel=1e-9), (key, name)


def acknowledged(scenario: Scenario) -> str:
    """Which messages have an acknowledgment of their own; in these scenarios every G-1 has an endpoint."""
    if scenario.queue is not None:  # nothing acknowledges its dead letters
        return f"queue = '{scenario.queue.name}'"
    return "true" if scenario.model is Model.TIBCO else held(scenario)


def check_done(summary: RunSummary, log: Any, by: Sequence[str], names: dict[int, str], acknowledged: str) -> None:
    columns = columns_of(by)
    at = columns.index("client") if "client" in columns else None
    wanted = {
        tuple(names.get(part, str(part)) if place == at else part for place, part in enumerate(key)): each
        for key, each in recomputed.times_to_done(log, by, acknowledged).items()
    }
    found = keyed(summary.tables["times_to_done"], columns, names)
    assert found.keys() == wanted.keys()
    for key, (done, ages) in wanted.items():
        times = DoneTimes(
            Counter(map(bucket_of, done)), Counter(map(bucket_of, ages)), sum(done), max(done, default=0),
            max(ages, default=0),
        )  # fmt: skip
        row = found[key]
        assert (row["done_messages"], row["unfinished_messages"]) == (len(done), len(ages))
        assert row["max_ns"] == max([*done, *ages])
        assert row["mean_ns"] == pytest.approx(times.mean_ns())
        for name, part in PERCENTILES.items():
            assert row[f"{name}_ns"] == times.percentile(*part), (key, name)
    law = keyed(summary.tables["littles_law"], columns, names)
    for key, row in keyed(recomputed.law_of_done(log, by, acknowledged), columns, names).items():
        if row["mean_ns"] is not None:
            assert law[key]["mean_done_ns"] == pytest.approx(row["mean_ns"], rel=1e-9)
            assert law[key]["mean_unfinished_messages"] > 0


def check_slow(summary: RunSummary, log: Any, by: Sequence[str], names: dict[int, str]) -> None:
    first, last = -(-log.warm_up_ns // SECOND_NS), log.horizon_ns // SECOND_NS
    last = max(first, last)
    keys = columns_of([word for word in by if word == "client"], "replication")
    found = keyed(summary.tables["slow_subscribers"], keys, names)
    blocked = {
        (*(names.get(part, str(part)) for part in place[:-1]), place[-1]): len(
            [s for s in seconds if first <= s < last]
        )
        for place, seconds in recomputed.slow_seconds(log, by).items()
    }
    assert {key: row["blocked_seconds"] for key, row in found.items()} == blocked


def check_intervals(summary: RunSummary, report: RunReport, by: Sequence[str]) -> None:
    """A mean over the replications is the sum that `queues` tells, divided by how many replications there are."""
    if "replication" in by:
        return
    keys = columns_of(by)
    totals = keyed(summary.queues, keys, {})
    rows = [row for row in summary.tables["intervals"] if row["measure"] == "arrived_messages"]
    assert len(rows) == len(totals)
    for row in rows:
        assert row["replications"] == report.info.replications == 2
        assert row["mean"] == pytest.approx(totals[tuple(row[key] for key in keys)].arrived_messages / 2)
