"""The planned events around an engine, in order of time: stops, outages, crashes and power failures.

Decides which of them are in force where a run begins. An outage that began before and has not ended continues when a
process or the engine starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from qsctl.core.integration.engine import Down
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.scenario.intervals import occurrences
from qsctl.sim.scenario.parts.engine import Engine
from qsctl.sim.scenario.scenario import ClientInterval


class Interruption(StrEnum):
    """A kind of interruption that the scenario plans."""

    PROCESS = "process"
    """A process crashes."""
    THREAD = "thread"
    """An operator stops a thread."""
    CONNECTION = "connection"
    POWER = "power"


class PlannedInterruption(NamedTuple):
    """The begin or end of an interruption, with the name of its process or thread; empty for power."""

    at_ns: Nanoseconds
    what: Interruption
    name: str
    is_end: bool


class RunPlan:
    """The planned interruptions of one run.

    Args:
        engine: the engine whose intervals are planned.
        horizon_ns: intervals that begin at this instant or later are left out.
        now: the instant at which the run begins.
        done_count: the number of events of that instant that an earlier run has carried out.
    """

    def __init__(self, engine: Engine, horizon_ns: Nanoseconds, now: Nanoseconds, done_count: int) -> None:
        self.is_powered = True
        self._processes = frozenset(each.name for each in engine.processes)
        self._down: dict[Interruption, set[str]] = {what: set() for what in Interruption}
        self.coming: list[PlannedInterruption] = []
        """Future events, in order."""
        for each in sorted(_planned(engine, horizon_ns), key=lambda each: each.at_ns):
            if each.at_ns < now or (each.at_ns == now and done_count > 0):
                done_count -= each.at_ns == now
                self.note(each)
            elif each.at_ns < INFINITE_NS:
                self.coming.append(each)

    def note(self, planned: PlannedInterruption) -> None:
        """Record that a planned event has happened."""
        if planned.what is Interruption.POWER:
            self.is_powered = planned.is_end
        elif planned.is_end:
            self._down[planned.what].discard(planned.name)
        else:
            self._down[planned.what].add(planned.name)

    def down(self) -> Down:
        """Return the interruptions in force, which an engine that starts now must keep."""
        processes = frozenset(self._down[Interruption.PROCESS]) if self.is_powered else self._processes
        return Down(
            processes, frozenset(self._down[Interruption.THREAD]), frozenset(self._down[Interruption.CONNECTION])
        )


def _planned(engine: Engine, horizon_ns: Nanoseconds) -> Iterable[PlannedInterruption]:
    for process in engine.processes:
        yield from _both_ends(Interruption.PROCESS, process.name, process.crashes, horizon_ns)
        for thread in process.threads:
            outages = thread.outbound.outages if thread.outbound else ()
            yield from _both_ends(Interruption.THREAD, thread.name, thread.stops, horizon_ns)
            yield from _both_ends(Interruption.CONNECTION, thread.name, outages, horizon_ns)
    yield from _both_ends(Interruption.POWER, "", engine.failures, horizon_ns)


def _both_ends(
    what: Interruption, name: str, intervals: Iterable[ClientInterval], horizon_ns: Nanoseconds
) -> Iterable[PlannedInterruption]:
    for start, end in occurrences(intervals, horizon_ns):
        yield PlannedInterruption(start, what, name, False)
        yield PlannedInterruption(end, what, name, True)
