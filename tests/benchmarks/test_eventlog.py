"""How fast the event log is written, beside a bare copy of the rows: figures, and a floor that a fault would break."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qsctl.eventlog.columns import message_table
from qsctl.eventlog.writer import ReplicationWriter
from qsctl.sim.model import LOG_ROW
from qsctl.sim.scenario.scenario import QUEUE_ORDER

ROWS = 1 << 20
CHUNKS = 8


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    random = np.random.default_rng(1)
    made = np.zeros(ROWS, LOG_ROW)
    made["enqueued_ns"] = np.cumsum(random.exponential(1000, ROWS))
    made["wait_ns"] = random.exponential(5000, ROWS)
    made["send_ns"] = made["wait_ns"] + 8192
    made["acknowledge_ns"] = made["send_ns"] + 1_000_000
    made["client_id"] = random.integers(0, 100, ROWS)
    made["size_bytes"], made["queue"], made["attempts"] = 1024, 1, 1
    lost = random.random(ROWS) < 0.1
    for name in ("send_ns", "acknowledge_ns"):
        made[name][lost] = -1
    made["outcome"][lost] = 1
    return made


def test_message_log_written(benchmark, rows: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> None:
    size = 0

    def write() -> None:
        nonlocal size
        folder: Path = tmp_path_factory.mktemp("log")
        with ReplicationWriter(folder, 0, "run", QUEUE_ORDER) as writer:
            for _ in range(CHUNKS):
                writer.messages(rows)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))

    benchmark.pedantic(write, rounds=3, warmup_rounds=1)
    benchmark.extra_info["messages_per_second"] = round(CHUNKS * ROWS / benchmark.stats.stats.median)
    benchmark.extra_info["bytes_a_row"] = round(size / CHUNKS / ROWS, 2)
    assert benchmark.extra_info["bytes_a_row"] < 10
    assert benchmark.extra_info["messages_per_second"] > 1_000_000


def test_rows_to_columns(benchmark, rows: np.ndarray) -> None:
    table = benchmark(message_table, rows, "run", QUEUE_ORDER)
    assert table.num_rows == ROWS
