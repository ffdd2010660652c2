"""Movements of messages in some dozens of equal blocks of each run, in which `finishing.changes` searches for
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from qsctl.instant import Nanoseconds
from qsctl.summary.measures.by_run import by_run
from qsctl.summary.measures.observation import Observation, listed

MOST_BLOCKS: Final = 64
BEFORE: Final = -1
"""The number of the block for movements during the warm-up, before the first one."""


@dataclass(frozen=True, slots=True)
class BlocksOfRun:
    """The whole blocks of the observed part of a run."""

    first_ns: Nanoseconds
    length_ns: Nanoseconds
    count: int


def blocks_of(observation: Observation, window_ns: Nanoseconds) -> tuple[BlocksOfRun, ...]:
    """Return the blocks of each run, with the number of windows in a block that yields at most `MOST_BLOCKS` blocks."""
    made = []
    for warm_up_ns, horizon_ns in zip(observation.warm_ups_ns, observation.horizons_ns, strict=True):
        first = -(-warm_up_ns // window_ns)
        windows = max(0, horizon_ns // window_ns - first)
        length = max(1, -(-windows // MOST_BLOCKS))
        made.append(BlocksOfRun(first * window_ns, length * window_ns, windows // length))
    return tuple(made)


def blocks(windows: DataFrame, keys: Sequence[str], runs: Sequence[BlocksOfRun]) -> DataFrame:
    """Return one row for each group, replication and block with any movement, in the schema `tables.BLOCKS`.

    Args:
        windows: result of `throughput.windows`, with these keys, and possibly others.
        keys: the grouping columns; `replication` is always an additional one.
        runs: the blocks of each run.
    """
    each = listed(*keys, "replication")
    first_ns = by_run([f"{run.first_ns}L" for run in runs])
    length_ns = by_run([f"{run.length_ns}L" for run in runs])
    count = by_run([f"{run.count}L" for run in runs])
    return windows.sparkSession.sql(
        f"""with placed as (
            select *,
                if(window_start_ns < {first_ns}, {BEFORE}L, (window_start_ns - {first_ns}) div {length_ns}) as block
            from {{windows}}
        )
        select {each}, block, sum(arrived_messages) as arrived_messages, sum(delivered_messages) as delivered_messages,
            sum(discarded_messages + lost_messages) as lost_messages,
            sum(entered_messages - left_messages) as growth_messages
        from placed where block < {count} group by {each}, block""",
        windows=windows,
    )
