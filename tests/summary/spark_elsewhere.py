"""What a test of a Spark that another process runs needs."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qsctl.summary.job import ALL, summarize_runs
from qsctl.summary.spark.session import SparkOptions


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def row_text(row: Mapping[str, Any]) -> str:
    """Return a row without the last digits of its fractions: the order in which replications arrive decides them."""
    return str({key: float(f"{value:.12g}") if isinstance(value, float) else value for key, value in row.items()})


def everything_of(folder: Path, options: SparkOptions) -> dict[str, Any]:
    """Every table of a summary, its rows in an order of their own."""
    made = summarize_runs([folder], measures=ALL, options=options)
    found = {name: sorted(map(row_text, rows)) for name, rows in made.tables.items()}
    assert found.keys() >= {"windows", "depth", "delays", "losses", "slow_subscribers", "littles_law", "intervals"}
    return {**found, "queues": sorted(map(str, made.queues))}
