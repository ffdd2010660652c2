"""Depth over time of one repetition, from the messages that its model logs, reduced to the width of a chart.

A message increases the depth of its queue when it enters and decreases it when it leaves, as in `qsctl summarize`
(`qsctl.summary.measures.moves`). The depth is sampled at `INSTANTS` instants of each bucket; a bucket has the lowest,
the highest and the mean sample. Memory does not grow with the number of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qsctl.eventlog.queue_counts import NEVER
from qsctl.eventlog.recording.rows import TableRows
from qsctl.eventlog.schema import MESSAGES
from qsctl.sim.model import LOG_ROW, OUTCOMES, Rows
from qsctl.sim.scenario.scenario import GuaranteedOverflow, Model, Scenario

if TYPE_CHECKING:
    import numpy.typing as npt

INSTANTS: Final = 16
"""Number of instants in a bucket at which the depth is sampled."""
_HOLDS_EVERYWHERE: Final = frozenset({Model.SHARED_READER_QUEUE, Model.WORLD, Model.REPLAY, Model.QUEUE})
"""Models whose queues hold a message until it is acknowledged."""

_COLUMNS: Final = MESSAGES.names[1:]
_OUTCOME_NUMBERS: Final = {str(outcome): number for number, outcome in enumerate(OUTCOMES)}
_NUMBERS_OF: Final[dict[str, Callable[[Sequence[str], Any], int]]] = {
    "queue": lambda names, name: names.index(name),
    "outcome": lambda _, outcome: _OUTCOME_NUMBERS[outcome],
    **dict.fromkeys(
        ("enqueued_ns", "enter_ns", "wait_ns", "acknowledge_ns"), lambda _, value: NEVER if value is None else value
    ),
}
"""The number of a cell of a column, from the names of queues and the value."""


@dataclass(frozen=True, slots=True)
class DepthOverTime:
    """The depth of one queue in messages, over all clients, with one value for each bucket."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    mean: tuple[float, ...]


class DepthCounter:
    """A counter of the messages that enter and leave each queue of a run.

    Args:
        scenario: scenario of the run; it determines whether a queue holds messages until they are acknowledged.
        names: names of the queues by their number in the log.
        buckets: number of buckets over the run.
    """

    def __init__(self, scenario: Scenario, names: Sequence[str], buckets: int) -> None:
        self._names = names
        self._buckets = buckets
        self._count = buckets * INSTANTS
        self._horizon_ns = scenario.horizon_ns
        self._moves = np.zeros((len(names), self._count + 1), np.int64)
        self._holds = scenario.model in _HOLDS_EVERYWHERE
        self._holders = _holders(scenario)
        self._seen = np.zeros(len(names), np.bool_)

    def add(self, rows: Rows) -> None:
        """Count the messages of log rows (`sim.model.LOG_ROW`)."""
        from qsctl.sim.depth_moves import count_moves
        from qsctl.sim.kernel.jit import as_records

        if len(rows):
            step_ns = self._horizon_ns / self._count
            counted = as_records(np.ascontiguousarray(rows))
            count_moves(counted, step_ns, self._holders, self._holds, self._moves, self._seen)

    def add_table(self, rows: TableRows) -> None:
        """Count the messages of rows of the table of messages without `run_id`; replays have these in place of
        `LOG_ROW`.
        """
        found = np.zeros(len(rows), LOG_ROW)
        columns = rows.columns() if len(rows) else []
        for name, (values, places) in zip(_COLUMNS, columns, strict=bool(columns)):
            if number_of := _NUMBERS_OF.get(name):
                numbers = [number_of(self._names, value) for value in values]
                found[name] = numbers if places is None else np.take(numbers, places)
        self.add(found)

    def result(self) -> dict[str, DepthOverTime]:
        """Return the depth of each queue that had messages."""
        depth = np.cumsum(self._moves, axis=1)[:, : self._count].reshape(len(self._names), self._buckets, INSTANTS)
        return {
            self._names[number]: DepthOverTime(
                tuple(depth[number].min(axis=1).tolist()),
                tuple(depth[number].max(axis=1).tolist()),
                tuple(depth[number].mean(axis=1).round(3).tolist()),
            )
            for number in np.flatnonzero(self._seen).tolist()
        }


def _holders(scenario: Scenario) -> npt.NDArray[np.bool_]:
    """Return, for each client of a broker, whether its queue G-1 holds messages until they are acknowledged."""
    if scenario.model is not Model.SOLACE:
        return np.zeros(0, np.bool_)
    lets_go = {each.name for each in scenario.profiles if each.guaranteed_overflow is GuaranteedOverflow.REDELIVER}
    return np.concatenate(
        [np.full(group.count, group.profile not in lets_go) for group in scenario.groups] or [np.zeros(0, np.bool_)]
    )
