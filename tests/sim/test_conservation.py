"""What was published is delivered, lost by a named cause, or still there: counters and rows of every scenario."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from qsctl.eventlog.outcomes import LOSS_COLUMNS, LOSSES, Outcome, column_of
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.figures import figures_of
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario.scenario import GuaranteedOverflow, Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario, ready_scenarios
from tests.eventlog.parts import parts_of
from tests.example_counts import examples
from tests.sim.random_scenarios import solace_scenarios

HORIZONS_NS = {
    "shared-reader-queue": 3 * SECOND_NS,
    "fan-out-10000": SECOND_NS // 20,
    "slow-subscriber": 75 * SECOND_NS,
    "world": 16 * SECOND_NS,
}


def whole_run(name: str) -> Scenario:
    """A ready scenario from its first message on: a warm-up restarts what is counted, not what is there."""
    scenario = read_scenario(find_scenario(name))
    horizon_ns = min(scenario.horizon_ns, HORIZONS_NS.get(name, 2 * SECOND_NS))
    return replace(scenario, horizon_ns=horizon_ns, warm_up_ns=0, replications=1)


def conserved(row: dict[str, Any]) -> None:
    lost = sum(row[name] for name in LOSS_COLUMNS)
    there = row["length_messages"] + row["waiting_messages"]
    assert row["arrived_messages"] == row["delivered_messages"] + row["elided_messages"] + lost + there, row


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("name", sorted(ready_scenarios()))
def test_published_is_delivered_lost_or_still_there_on_every_ready_scenario(name: str, tmp_path: Path) -> None:
    report = run(whole_run(name), tmp_path / "run", level=LogLevel.MESSAGES)
    rows = report.counters.to_pylist()
    for row in rows:
        conserved(row)
    outcomes: Counter[str] = Counter()
    for part in parts_of(report.folder, "messages"):
        outcomes.update(pq.ParquetFile(part).read(columns=["outcome"])["outcome"].to_pylist())
    # Where nothing is acknowledged, what is unfinished is not known.
    columns = [name for name in rows[0] if name.endswith("_messages")]
    total = {column: sum(row[column] or 0 for row in rows) for column in columns}
    for outcome in (Outcome.DELIVERED, Outcome.ELIDED, Outcome.WAITING, *LOSSES):
        assert outcomes[outcome.value] == total[column_of(outcome)], outcome
    assert outcomes["held"] == total["length_messages"]
    assert outcomes.total() == total["arrived_messages"]
    # A dead letter arrives once more, in its other queue; in an engine a message arrives in one queue after another.
    if report.info.model not in {"shared_reader_queue", "integration"}:
        assert total["arrived_messages"] == report.info.done[0].messages
    figures = figures_of(report.counters)
    assert sum(each.lost_messages for each in figures) == sum(total[name] for name in LOSS_COLUMNS)
    if name == "ingress":
        assert total["ingress_refused_messages"] > 10_000
        assert total["too_big_messages"] > 1000


@settings(max_examples=examples(25))
@given(solace_scenarios())
def test_nothing_vanishes_in_a_random_scenario(scenario: Scenario) -> None:
    holding = tuple(replace(each, guaranteed_overflow=GuaranteedOverflow.HOLD) for each in scenario.profiles)
    broker = replace(scenario.broker, max_message_bytes=9000, ingress_rate_bits_per_second=40_000_000,
                     ingress_buffer_bytes=40_000)  # fmt: skip
    for row in simulate_counters(replace(scenario, profiles=holding, broker=broker, warm_up_ns=0)).to_pylist():
        conserved(row)
