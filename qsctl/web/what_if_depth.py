"""Depth over time of one repetition, from the messages that its model logs, bounded to the width of a chart.

Each message adds one to its queue when it enters and takes one away when it leaves, as `qsctl summarize` counts it
(`qsctl.summary.moves`). The depth is read at `INSTANTS` instants of each bucket; a bucket has the lowest, the highest
and the mean of them. Memory does not grow with the number of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qsctl.sim.model import NEVER, OUTCOMES, Rows
from qsctl.sim.scenario.scenario import QUEUE_ORDER, GuaranteedOverflow, Model, Queue, Scenario

if TYPE_CHECKING:
    import numpy.typing as npt

INSTANTS: Final = 16
"""Instants of a bucket at which the depth is read."""
_HOLDS_EVERYWHERE: Final = frozenset({Model.SHARED_READER_QUEUE, Model.WORLD, Model.REPLAY, Model.QUEUE})
"""Models whose queues hold a message until it is acknowledged."""


@dataclass(frozen=True, slots=True)
class DepthOverTime:
    """The depth of one queue in messages, all clients together: one value a bucket."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    mean: tuple[float, ...]


class DepthCounter:
    """Counts what enters and leaves each queue of a run.

    Args:
        scenario: of the run; what its queues hold beyond sending follows from it.
        names: what the log's queue numbers mean.
        buckets: of the horizon.
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
        """Count rows of the log, `sim.model.LOG_ROW`."""
        if not len(rows):
            return
        arrived, queue = rows["enqueued_ns"], rows["queue"].astype(np.int64)
        entered, left = rows["enter_ns"] != NEVER, self._stayed(rows)
        self._seen[np.unique(queue)] = True
        self._count_at(queue[entered], (arrived + rows["enter_ns"])[entered], 1)
        gone = entered & (left != NEVER)
        self._count_at(queue[gone], (arrived + left)[gone], -1)

    def _stayed(self, rows: Rows) -> npt.NDArray[Any]:
        """Return the time from the arrival to leaving the queue; NEVER for what is still in it."""
        wait, acknowledged = rows["wait_ns"], rows["acknowledge_ns"]
        held = np.where(rows["outcome"] == _DELIVERED, np.where(acknowledged == NEVER, wait, acknowledged), wait)
        held = np.where(rows["outcome"] == _HELD, NEVER, held)
        if self._holds:
            return held
        if not len(self._holders):
            return wait
        client = np.minimum(rows["client_id"], len(self._holders) - 1)
        return np.where((rows["queue"] == _GUARANTEED) & self._holders[client], held, wait)

    def _count_at(self, queue: npt.NDArray[Any], instants: npt.NDArray[Any], sign: int) -> None:
        if not len(queue):
            return
        # A step of the depth counts from the first instant at which it is read behind it.
        step = self._horizon_ns / self._count
        place = np.clip(np.ceil(instants / step).astype(np.int64), 0, self._count)
        counted = np.bincount(queue * (self._count + 1) + place, minlength=self._moves.size)
        self._moves += sign * counted.reshape(self._moves.shape)

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


_DELIVERED: Final = next(number for number, each in enumerate(OUTCOMES) if each == "delivered")
_HELD: Final = next(number for number, each in enumerate(OUTCOMES) if each == "held")
_GUARANTEED: Final = QUEUE_ORDER.index(Queue.G_1)


def _holders(scenario: Scenario) -> npt.NDArray[np.bool_]:
    """Return for each client of a broker whether its G-1 holds messages until they are acknowledged."""
    if scenario.model is not Model.SOLACE:
        return np.zeros(0, np.bool_)
    lets_go = {each.name for each in scenario.profiles if each.guaranteed_overflow is GuaranteedOverflow.REDELIVER}
    return np.concatenate(
        [np.full(group.count, group.profile not in lets_go) for group in scenario.groups] or [np.zeros(0, np.bool_)]
    )
