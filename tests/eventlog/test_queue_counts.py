"""The counts of one queue: what of a run is observed."""

from __future__ import annotations

from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import QueueCounts
from qsctl.sim.model import NEVER


def test_observation_begins_with_the_end_of_the_warm_up() -> None:
    counts = QueueCounts(10)
    for enqueued_ns in (9, 10, 11):
        counts.count(enqueued_ns, 100, NEVER, Outcome.HELD, NEVER)
    assert counts.arrived == 2
    assert counts.by_outcome[Outcome.HELD] == 3, "what is there at the end counts whenever it came"
