"""Changes of queue depth in each equal part of a run's horizon, counted from the rows of its message log.

One compiled loop over the rows: numpy operations on one array per column took ten times as long, half of the time of
the simulation.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qsctl.eventlog.queue_counts import NEVER
from qsctl.eventlog.schema import Outcome
from qsctl.sim.kernel.jit import kernel
from qsctl.sim.model import OUTCOMES
from qsctl.sim.scenario.scenario import QUEUE_ORDER, Queue

_DELIVERED: Final = OUTCOMES.index(Outcome.DELIVERED)
_HELD: Final = OUTCOMES.index(Outcome.HELD)
_GUARANTEED: Final = QUEUE_ORDER.index(Queue.G_1)


@kernel
def count_moves(rows: Any, part_ns: float, holders: Any, holds_all: bool, moves: Any, seen: Any) -> None:
    """Add 1 to the first part that begins with a message in its queue, -1 to the first that begins after it left.

    Args:
        rows: rows of `LOG_ROW`.
        part_ns: length of a part of the horizon.
        holders: for each client, whether its G-1 queue holds a message until it is acknowledged.
        holds_all: whether every queue holds a message until it is acknowledged.
        moves: counts by queue and part; the last part also counts later moves. Changed in place.
        seen: for each queue, whether any message entered it. Changed in place.
    """
    last = moves.shape[1] - 1
    for i in range(len(rows)):
        message = rows[i]
        queue = int(message.queue)
        seen[queue] = True
        if message.enter_ns == NEVER:
            continue
        arrived = int(message.enqueued_ns)
        entered = int(np.ceil(float(arrived + message.enter_ns) / part_ns))
        moves[queue, max(0, min(last, entered))] += 1
        stayed = int(message.wait_ns)
        client = int(message.client_id)
        holds = holds_all
        if not holds and queue == _GUARANTEED and len(holders) > 0:
            holds = holders[min(client, len(holders) - 1)]
        if holds:
            if message.outcome == _HELD:
                continue
            if message.outcome == _DELIVERED and message.acknowledge_ns != NEVER:
                stayed = int(message.acknowledge_ns)
        if stayed == NEVER:
            continue
        left = int(np.ceil(float(arrived + stayed) / part_ns))
        moves[queue, max(0, min(last, left))] -= 1
