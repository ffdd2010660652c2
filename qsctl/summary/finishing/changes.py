"""The stretch of each run in which a queue deviates most from the rest of the run, if it explains most of the
variation.

The result is a description, not a test: neighbouring blocks of a queue depend on each other, so that no probability is
stated. For every stretch of neighbouring blocks, the difference between its mean and that of all others explains a part
of the sum of squares; the stretch that explains most is listed if that part is at least `LEAST_EXPLAINED`. It is a
disturbance in the middle of a run, or a shift if it begins or ends with the run. Of series of 64 normal blocks, whether
independent or correlated by 0.5 with their neighbours, fewer than one in a thousand has such a stretch; with a
correlation of 0.8 some in a hundred have one, and of queues that drift slowly every second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qsctl.instant import SECOND_NS
from qsctl.summary.finishing.arrow import Whole, group_numbers
from qsctl.summary.measures.blocks import BEFORE, BlocksOfRun
from qsctl.summary.measures.by_run import RUN_NUMBER

Values = npt.NDArray[np.float64]

LEAST_BLOCKS: Final = 32
"""Least number of blocks for a result: with few blocks, one stretch explains much of the variation by chance."""
LEAST_EXPLAINED: Final = 0.6
MEASURES: Final = ("arrived_per_second", "delivered_per_second", "lost_per_second", "depth_messages")
"""The compared measures of a block: rates, and the queue's depth at its end."""

_RATES: Final = ("arrived_messages", "delivered_messages", "lost_messages")
_ROWS_AT_ONCE: Final = 2048


def changes(blocks: pa.Table, keys: Sequence[str], runs: Sequence[BlocksOfRun]) -> pa.Table:
    """Return one row for each group, replication and measure with such a stretch: its keys and the columns of
    `CHANGES`.

    Args:
        blocks: table of the schema `tables.BLOCKS`, with these keys.
        keys: the grouping columns, without `replication`.
        runs: the blocks of each run.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    numbers = blocks[RUN_NUMBER].to_numpy() if RUN_NUMBER in each else np.zeros(blocks.num_rows, np.int64)
    made = []
    for number, run in enumerate(runs):
        if run.count >= LEAST_BLOCKS:
            made += _of_run(blocks.filter(pa.array(numbers == number)), each, run)
    shape = [*((name, blocks[name].type) for name in each), *_COLUMNS.items()]
    if not made:
        return pa.schema(shape).empty_table()
    return pa.concat_tables(made)


_COLUMNS: Final = {
    "measure": pa.string(), "from_ns": pa.int64(), "until_ns": pa.int64(), "inside": pa.float64(),
    "outside": pa.float64(), "explained_share": pa.float64(),
}  # fmt: skip


def _of_run(blocks: pa.Table, each: Sequence[str], run: BlocksOfRun) -> list[pa.Table]:
    if not blocks.num_rows:
        return []
    groups, first_rows = group_numbers(blocks, each)
    places = blocks["block"].to_numpy()
    inside = places != BEFORE

    def dense(column: str, rows: npt.NDArray[np.bool_]) -> Values:
        made = np.zeros((len(first_rows), run.count))
        np.add.at(made, (groups[rows], places[rows]), blocks[column].to_numpy()[rows].astype(float))
        return made

    rates = [dense(name, inside) * (SECOND_NS / run.length_ns) for name in _RATES]
    held = np.zeros(len(first_rows))
    np.add.at(held, groups[~inside], blocks["growth_messages"].to_numpy()[~inside].astype(float))
    depth = held[:, None] + np.cumsum(dense("growth_messages", inside), axis=1)
    made = []
    for measure, values in zip(MEASURES, (*rates, depth), strict=True):
        begins, ends, explained = most_different(values)
        listed = np.flatnonzero(explained >= LEAST_EXPLAINED)
        if not len(listed):
            continue
        begins, ends, values = begins[listed], ends[listed], values[listed]
        sums = np.concatenate([np.zeros((len(listed), 1)), np.cumsum(values, axis=1)], axis=1)
        rows = np.arange(len(listed))
        of_stretch, count = sums[rows, ends] - sums[rows, begins], ends - begins
        columns: dict[str, Any] = {
            **{name: blocks[name].take(pa.array(first_rows[listed])) for name in each},
            "measure": pa.repeat(measure, len(listed)),
            "from_ns": run.first_ns + begins * run.length_ns,
            "until_ns": run.first_ns + ends * run.length_ns,
            "inside": of_stretch / count,
            "outside": (sums[:, -1] - of_stretch) / (run.count - count),
            "explained_share": np.minimum(explained[listed], 1.0),
        }
        kinds = {name: blocks[name].type for name in each} | _COLUMNS
        made.append(pa.table({name: pa.chunked_array(columns[name], kind) if isinstance(columns[name], pa.ChunkedArray)
                              else pa.array(columns[name], kind) for name, kind in kinds.items()}))  # fmt: skip
    return made


def most_different(values: Values) -> tuple[Whole, Whole, Values]:
    """Return for each series the first and last block of the stretch that explains most, and the explained part.

    The end is exclusive; the part is 0 for a constant series.

    Args:
        values: a row for each series, a column for each block.
    """
    count = values.shape[1]
    first, behind = np.triu_indices(count + 1, 1)
    length = behind - first
    first, behind, length = first[length < count], behind[length < count], length[length < count]
    weight = count / (length * (count - length))
    begins, ends, explained = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for at in range(0, len(values), _ROWS_AT_ONCE):
        centred = values[at : at + _ROWS_AT_ONCE] - values[at : at + _ROWS_AT_ONCE].mean(axis=1, keepdims=True)
        sums = np.concatenate([np.zeros((len(centred), 1)), np.cumsum(centred, axis=1)], axis=1)
        squares = (centred**2).sum(axis=1)
        between = (sums[:, behind] - sums[:, first]) ** 2 * weight
        place = between.argmax(axis=1)
        largest = np.take_along_axis(between, place[:, None], axis=1)[:, 0]
        # A series that is constant but for the rounding of its mean has no variation to explain.
        varies = squares > count * (1e-12 * np.abs(values[at : at + _ROWS_AT_ONCE]).max(axis=1)) ** 2
        begins.append(first[place])
        ends.append(behind[place])
        explained.append(np.where(varies, largest / np.where(varies, squares, 1.0), 0.0))
    return np.concatenate(begins), np.concatenate(ends), np.concatenate(explained)
