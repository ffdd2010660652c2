"""The same scenario and seed write the same bytes: by any number of processes, with any size of log chunk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.egress import solace
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.model import CHUNK_ROWS
from qsctl.sim.run import run
from qsctl.sim.scenario.scenario import ClientInterval, Eliding, PoissonArrivals, Queue, Scenario, Traffic
from tests.sim.brokers import broker, limits

REPLICATIONS = 3


class Cut:
    """The Solace model with log chunks of another size."""

    def __init__(self, chunk_rows: int) -> None:
        self._chunk_rows = chunk_rows

    def prepare(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> EgressRun:
        made = solace.prepare(scenario, replication, level, min(self._chunk_rows, chunk_rows))
        assert isinstance(made, EgressRun)
        return made


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    made = broker(
        Traffic("t", "c", PoissonArrivals(2000.0), topics=3, fan_out=True),
        Traffic("u", "c", PoissonArrivals(500.0), queue=Queue.G_1),
        count=3, rate_bits_per_second=20_000_000, queues=limits(20), loss_probability=0.02, eliding=Eliding(True),
        absences=(ClientInterval(SECOND_NS // 4, SECOND_NS // 10),), horizon_ns=SECOND_NS // 2,
    )  # fmt: skip
    return replace(made, replications=REPLICATIONS, log_level="events")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def expected(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("alone") / "run"
    run(scenario, folder, reproduce="qsctl simulate")
    found = contents(folder)
    assert sum("replication=" in name for name in found) == 3 * REPLICATIONS
    return found


@pytest.mark.slow
def test_several_processes(scenario: Scenario, expected: dict[str, bytes], tmp_path: Path) -> None:
    """One of them simulates two repetitions."""
    run(scenario, tmp_path / "run", reproduce="qsctl simulate", workers=REPLICATIONS - 1)
    assert contents(tmp_path / "run") == expected


@pytest.mark.parametrize("chunk_rows", [1, 100, 1 << 10])
def test_any_size_of_log_chunk(chunk_rows: int, scenario: Scenario, expected: dict[str, bytes], tmp_path: Path) -> None:
    run(scenario, tmp_path / "run", reproduce="qsctl simulate", model=Cut(chunk_rows))
    assert contents(tmp_path / "run") == expected
