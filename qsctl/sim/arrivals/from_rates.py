"""Arrivals from rates over time: a trace for a scenario, with random messages at a recorded rate.

Within a step, a client's messages are a Poisson process with the step's rate. The same seed gives the same trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from qsctl.errors import InvalidInput
from qsctl.instant import SECOND_NS

MESSAGES_MAX: Final = 20_000_000
"""Of a trace: some hundred megabytes of CSV."""


def trace_of_rates(rates_per_s: Sequence[Sequence[float]], step_s: float, size_bytes: int, seed: int) -> pa.Table:
    """Return a trace with `time_ns` and `size_bytes`, and `client` where rates of several clients are given.

    Args:
        rates_per_s: for each client, the messages per second in each step.
        step_s: the length of a step in seconds.
        size_bytes: the size of every message.
        seed: the seed of the random numbers.

    Raises:
        InvalidInput: the trace would have too many messages.
    """
    rates = np.asarray(rates_per_s, dtype=np.float64)
    expected = float(rates.sum()) * step_s
    if not expected <= MESSAGES_MAX:
        raise InvalidInput(
            f"these rates are {expected:,.0f} messages", remedy=f"Choose a shorter time: at most {MESSAGES_MAX:,}."
        )
    generator = np.random.default_rng(seed)
    counts = generator.poisson(rates * step_s)
    steps = np.repeat(np.tile(np.arange(rates.shape[1]), rates.shape[0]), counts.ravel())
    clients = np.repeat(np.arange(rates.shape[0]), counts.sum(axis=1))
    times = ((steps + generator.random(steps.size)) * (step_s * SECOND_NS)).astype(np.int64)
    order = np.argsort(times, kind="stable")
    columns = {"time_ns": times[order], "size_bytes": np.full(times.size, size_bytes, np.int64)}
    if rates.shape[0] > 1:
        columns["client"] = clients[order]
    return pa.table(columns)


def write_trace(trace: pa.Table, path: Path) -> None:
    """Write a trace as CSV."""
    pa_csv.write_csv(trace, path)
