"""Operations on Arrow tables: grouping, joins and sorting, with sums that are exact or raise an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.errors import Damaged
from qsctl.summary.measures.observation import SUM_HIGH, SUM_LOW, SUM_LOW_BITS

Whole = npt.NDArray[np.int64]

LARGEST_SUM: Final = 2**63 - 1
_TOO_LARGE: Final = "a group's {} add up to more than 64 bits hold; group by more, or simulate a shorter time"


def grouped(table: pa.Table, keys: Sequence[str], **how: str) -> pa.Table:
    """Return one row for each group: its keys, and the aggregates of the named columns.

    Args:
        table: the rows; no key is null.
        keys: the grouping columns, at least one.
        how: `sum`, `min` or `max` by the column's name. Nulls are ignored; a group of nulls alone yields null.

    Raises:
        Damaged: a sum does not fit in 64 bits, where Arrow's own would wrap silently.
    """
    for name, kind in how.items():
        if kind == "sum":
            _require_room(table, keys, name)
    made = table.group_by(list(keys), use_threads=False).aggregate(list(how.items()))
    # Arrow names an aggregate by its column and function.
    return pa.table({**columns(made, keys), **{name: made[f"{name}_{kind}"] for name, kind in how.items()}})


def _require_room(table: pa.Table, keys: Sequence[str], name: str) -> None:
    column = table[name]
    if not table.num_rows or not pa.types.is_integer(column.type):
        return
    ends = pc.min_max(column).as_py()
    largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    if largest * table.num_rows <= LARGEST_SUM:
        return
    roughly = pa.table({**columns(table, keys), name: column.cast(pa.float64(), safe=False)})
    sums = roughly.group_by(list(keys), use_threads=False).aggregate([(name, "sum")])[f"{name}_sum"]
    if pc.max(pc.abs(sums)).as_py() >= LARGEST_SUM:
        raise Damaged(_TOO_LARGE.format(name))


def with_exact_sums(table: pa.Table) -> pa.Table:
    """Return the table with the two parts of each `observation.exact_sum` combined into one column.

    Raises:
        Damaged: a sum does not fit in 64 bits.
    """
    made = {}
    for name in table.column_names:
        if name.endswith(SUM_LOW):
            continue
        column = table[name]
        if name.endswith(SUM_HIGH):
            name = name.removesuffix(SUM_HIGH)
            low = table[name + SUM_LOW]
            carried = pc.add(column, pc.shift_right(low, SUM_LOW_BITS))
            if (pc.max(carried).as_py() or 0) > LARGEST_SUM >> SUM_LOW_BITS:
                raise Damaged(_TOO_LARGE.format(name))
            column = pc.add(pc.shift_left(carried, SUM_LOW_BITS), pc.bit_wise_and(low, (1 << SUM_LOW_BITS) - 1))
        made[name] = column
    return pa.table(made)


def group_numbers(table: pa.Table, keys: Sequence[str]) -> tuple[Whole, Whole]:
    """Return the group number of each row, from 0, and the first row of each group."""
    numbers = np.zeros(table.num_rows, np.int64)
    for name in keys:
        codes = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        _, numbers = np.unique(
            numbers * max(1, len(codes.dictionary)) + codes.indices.to_numpy().astype(np.int64), return_inverse=True
        )
    _, first_rows, groups = np.unique(numbers, return_index=True, return_inverse=True)
    return groups, first_rows


def columns(table: pa.Table, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Return the columns of the given names."""
    return {name: table[name] for name in names}


def joined(left: pa.Table, right: pa.Table, keys: Sequence[str], how: str) -> pa.Table:
    """Return the join of two tables on keys of the same names; `how` is `left outer`, `inner` or `full outer`."""
    return left.join(right, keys=list(keys), join_type=how, use_threads=False)


def ordered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows in ascending order of these columns."""
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


def starts_of(table: pa.Table, keys: Sequence[str]) -> Whole:
    """Return the first row of each group in a table sorted by the keys."""
    changes = np.zeros(table.num_rows, np.bool_)
    changes[:1] = True
    for key in keys:
        column = table[key].combine_chunks()
        if pa.types.is_string(column.type):
            column = column.dictionary_encode().indices
        values = column.to_numpy(zero_copy_only=False)
        changes[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(changes)


def whole(table: pa.Table, name: str) -> Whole:
    """Return an integer column without nulls as an array."""
    return np.asarray(table[name].to_numpy(), np.int64)


def chosen(condition: npt.NDArray[np.bool_], values: pa.ChunkedArray, otherwise: int | None) -> pa.ChunkedArray:
    """Return the values where the condition holds, else the number `otherwise`, or null if it is None."""
    return pc.if_else(pa.array(condition), values, pa.scalar(otherwise, values.type))


def with_columns(table: pa.Table, made: Mapping[str, Any]) -> pa.Table:
    """Return the table with the given columns added or replaced."""
    return pa.table({**columns(table, table.column_names), **made})
