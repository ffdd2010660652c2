"""Throughput and discards in windows of time: what entered and what left each window, by one pass over the log.

Messages are first counted by the windows in which they came and went, for most go in the window in which they came;
only those few rows are then told apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import LOSSES, Outcome
from qsctl.instant import Nanoseconds
from qsctl.summary.groups import grouped, whole, with_columns
from qsctl.summary.holders import COLUMNS, departures, left_sql
from qsctl.summary.log_pass import grouped_by_names
from qsctl.summary.observation import listed, outcome_numbers

_SENT, _DISCARDED, _ELIDED, _LOST, _OTHER = range(5)
_WAYS: Final = {
    Outcome.DELIVERED.value: _SENT,
    Outcome.ELIDED.value: _ELIDED,
    **{outcome.value: _LOST for outcome in LOSSES},
    Outcome.DISCARDED.value: _DISCARDED,
}

_MOVED: Final = ("messages", "work_units", "bytes")
_COUNTED: Final = (
    "arrived_messages", "entered_work_units", "left_messages", "left_work_units", "delivered_messages",
    "discarded_messages", "elided_messages", "lost_messages", "delivered_bytes",
)  # fmt: skip

_STILL_THERE: Final = -1
PLAIN_COLUMNS: Final = ("enqueued_ns", "wait_ns", "outcome")


@dataclass(frozen=True, slots=True)
class Windows:
    """One row a group, replication and window in which anything entered or left a queue: `windows` in one pass.

    `keys` are the columns grouped by, `replication` besides; windows count from the start of the run.
    """

    keys: tuple[str, ...]
    window_ns: Nanoseconds
    holders: frozenset[int] = frozenset()
    """Clients whose G-1 holds messages until they are acknowledged (`holders.holders_of`)."""

    @property
    def columns(self) -> Sequence[str]:
        """What tells when a message came and went, and how large it is."""
        return (*self.keys, *(COLUMNS if self.holders else PLAIN_COLUMNS), "work_units", "size_bytes")

    @property
    def _each(self) -> list[str]:
        return list(dict.fromkeys([*self.keys, "replication"]))

    def of(self, batch: pa.Table) -> pa.Table:
        """The windows of a part of the log."""
        gone, left_ns = departures(batch, self.holders)
        went = left_ns // self.window_ns
        moved = grouped_by_names(
            batch,
            self._each,
            {
                "way": pa.array(outcome_numbers(batch, _WAYS, _OTHER)),
                "came": pa.array(whole(batch, "enqueued_ns") // self.window_ns),
                "went": pa.array(went if gone is None else np.where(gone, went, _STILL_THERE)),
                "messages": pa.array(np.ones(batch.num_rows, np.int64)),
                "work_units": batch["work_units"],
                "bytes": batch["size_bytes"],
            },
            **dict.fromkeys(_MOVED, "sum"),
        )
        way = whole(moved, "way")
        nothing = np.zeros(len(way), np.int64)
        messages, work_units, size_bytes = (whole(moved, name) for name in _MOVED)

        def steps(at: str, counted: dict[str, np.ndarray]) -> pa.Table:
            place = moved.select(self._each)
            counts = {name: pa.array(counted.get(name, nothing)) for name in _COUNTED}
            return with_columns(place, {"window_start_ns": pa.array(whole(moved, at) * self.window_ns), **counts})

        came = steps("came", {"arrived_messages": messages, "entered_work_units": work_units})
        went_away = steps(
            "went",
            {
                "left_messages": messages,
                "left_work_units": work_units,
                "delivered_messages": np.where(way == _SENT, messages, 0),
                "discarded_messages": np.where(way == _DISCARDED, messages, 0),
                "elided_messages": np.where(way == _ELIDED, messages, 0),
                "lost_messages": np.where(way == _LOST, messages, 0),
                "delivered_bytes": np.where(way == _SENT, size_bytes, 0),
            },
        )
        went_away = went_away.filter(pc.greater_equal(went_away["window_start_ns"], 0))
        return self.merged(pa.concat_tables([came, went_away]))

    def merged(self, parts: pa.Table) -> pa.Table:
        """Sums of sums."""
        made = grouped(parts, [*self._each, "window_start_ns"], **dict.fromkeys(_COUNTED, "sum"))
        return with_columns(made, {"window_ns": pa.array(np.full(made.num_rows, self.window_ns, np.int64))})


def windows(
    messages: DataFrame, keys: Sequence[str], window_ns: Nanoseconds, holders: Collection[int] = ()
) -> DataFrame:
    """The same as a frame of Spark: for so many windows that they do not fit here.

    Args:
        messages: the message log with the key columns.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        window_ns: the windows' length; they count from the start of the run.
        holders: clients whose G-1 holds messages until they are acknowledged.
    """
    each = listed(*keys, "replication")

    def left(*outcomes: Outcome, of: str = "messages") -> str:
        names = ", ".join(f"'{outcome.value}'" for outcome in outcomes)
        return f"sum(if(not entered and outcome in ({names}), {of}, 0))"

    sent = (Outcome.DELIVERED,)
    others = [outcome for outcome in LOSSES if outcome is not Outcome.DISCARDED]
    # Whole numbers only: a quotient of doubles is inexact beyond 2^53.
    return messages.sparkSession.sql(
        f"""with moved as (
            select {each}, outcome, enqueued_ns div {window_ns}L as came,
                ({left_sql(holders)}) div {window_ns}L as went,
                count(1) as messages, sum(work_units) as work_units, sum(size_bytes) as bytes
            from {{messages}} group by all
        ), steps as (
            select {each}, outcome, messages, work_units, bytes,
                inline(array(struct(true as entered, came as number), struct(false as entered, went as number)))
            from moved
        )
        select {each}, number * {window_ns}L as window_start_ns, {window_ns}L as window_ns,
            sum(if(entered, messages, 0)) as arrived_messages, sum(if(entered, work_units, 0)) as entered_work_units,
            sum(if(entered, 0, messages)) as left_messages, sum(if(entered, 0, work_units)) as left_work_units,
            {left(*sent)} as delivered_messages, {left(Outcome.DISCARDED)} as discarded_messages,
            {left(Outcome.ELIDED)} as elided_messages, {left(*others)} as lost_messages,
            {left(*sent, of="bytes")} as delivered_bytes
        from steps where number is not null group by {each}, number""",
        messages=messages,
    )
