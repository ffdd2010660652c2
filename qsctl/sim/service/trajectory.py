"""A run of our own queues whose state can be saved and resumed repeatedly, for multilevel splitting.

The service, its peers and the messages in transit are plain objects: the state is all of them, written by `pickle`,
exactly and completely. It includes the queue's memory of samples that have left it, so that saving takes longer the
more the queue remembers. Arrivals, service times and answers after the instant are drawn anew for each branch; the end
of a service in progress is kept. Histograms, which only measure waits, are not part of it.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Final

import numpy as np

from qsctl.eventlog.outcomes import LOSSES, Outcome
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.arrivals.branching import BranchingCursor
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.service.peers import arrivals_scenario
from qsctl.sim.service.run import SharedReaderQueueRun
from qsctl.sim.splitting.question import Question, no_such_queue
from qsctl.sim.splitting.trajectory import QueueTally

_ENDED: Final = (*LOSSES, Outcome.DELIVERED, Outcome.ELIDED)


class BranchingRun(SharedReaderQueueRun):
    """A run whose arrivals and peers can be drawn anew from an instant on."""

    def __init__(self, scenario: Scenario, replication: int) -> None:
        super().__init__(scenario, replication, LogLevel.COUNTERS)
        self._cursor = BranchingCursor(arrivals_scenario(scenario), replication, scenario.horizon_ns)
        self._arrivals = self._cursor

    def next_pass(self, until_ns: Nanoseconds) -> bool:
        """Process the next instant before `until_ns`; where there is none, advance to `until_ns` and return False."""
        instant = self._next_instant()
        if instant >= until_ns:
            self.now_ns = max(self.now_ns, until_ns)
            return False
        self.now_ns = instant
        self._pass(instant)
        return True

    def queue_of(self, name: str) -> str:
        """Return the full name of a queue.

        Raises:
            InvalidInput: no queue has this name.
        """
        for short, queue in zip(self.queue_names, self._queues, strict=True):
            if name in {short, queue.full_name}:
                return queue.full_name
        raise no_such_queue(name, self.queue_names)

    def limit_of(self, full_name: str) -> int:
        """Return the maximum number of samples of a queue; 0 means unlimited."""
        return next(max(0, queue.max_count) for queue in self._queues if queue.full_name == full_name)

    def tally(self, full_name: str) -> QueueTally:
        """Return the losses, ended samples and high-water mark of a queue since the warm-up."""
        counts = self._log.counts_of(full_name)
        if not self._log.is_warm:
            return QueueTally(0, 0, 0)
        lost = sum(counts.by_outcome[outcome] for outcome in LOSSES)
        return QueueTally(lost, sum(counts.by_outcome[outcome] for outcome in _ENDED), counts.high_water_mark)

    def depth(self, full_name: str, in_work_units: bool) -> int:
        """Return the number of samples in a queue, or their work units."""
        return self._log.counts_of(full_name).work_units if in_work_units else self._log.length_of(full_name)

    def forget_waits(self) -> None:
        """Empty the histograms, which only the figures of a whole run use."""
        for queue in self._queues:
            counts = self._log.counts_of(queue.full_name)
            counts.histogram.clear()
            counts.done.clear()

    def begin_anew(self, branch: int) -> None:
        """Draw random values after this instant from the streams of a branch."""
        self._cursor.begin_anew(self.now_ns, branch)
        with np.errstate(over="ignore"):
            for consumer in self._consumers:
                consumer.service_key = np.uint64(uniform_bits(consumer.service_key, branch))
                consumer.answer_key = np.uint64(uniform_bits(consumer.answer_key, branch))


@dataclass(frozen=True, slots=True)
class SavedService:
    """The saved state of a run at an instant, as bytes."""

    run: bytes


class ServiceTrajectory:
    """A run of a service under virtual time that `sim.splitting` can branch.

    The importance is the number of samples in the queue, or its depth in work units where the question is about a
    depth.
    """

    def __init__(self, scenario: Scenario, replication: int, question: Question) -> None:
        self._run = BranchingRun(scenario, replication)
        self._until_ns = scenario.horizon_ns
        self._queue = self._run.queue_of(question.queue)
        self._by_depth = question.by_depth
        self.most = question.level if question.by_depth else self._run.limit_of(self._queue)

    @property
    def messages(self) -> int:
        """The number of messages that have arrived in this trajectory so far."""
        return self._run.messages

    def importance(self) -> int:
        """Return the importance of the present state."""
        return self._run.depth(self._queue, self._by_depth)

    def advance(self, low: int, high: int) -> bool:
        """Simulate while low ≤ importance < high; return False at the horizon."""
        run, queue, by_depth, until_ns = self._run, self._queue, self._by_depth, self._until_ns
        while run.next_pass(until_ns):
            if not low <= run.depth(queue, by_depth) < high:
                return True
        return False

    def skip(self, until_ns: Nanoseconds) -> None:
        """Simulate to an instant, regardless of the importance."""
        self._run.step(until_ns)

    def tally(self) -> QueueTally:
        """Return the losses, messages and high-water mark counted on the path to the present state."""
        return self._run.tally(self._queue)

    def save(self) -> SavedService:
        """Return a copy of the present state."""
        self._run.forget_waits()
        return SavedService(pickle.dumps(self._run, pickle.HIGHEST_PROTOCOL))

    def resume(self, saved: SavedService, branch: int | None) -> None:
        """Return to a saved state; with a branch number, later random values are drawn from that branch's streams."""
        self._run = pickle.loads(saved.run)
        if branch is not None:
            self._run.begin_anew(branch)
