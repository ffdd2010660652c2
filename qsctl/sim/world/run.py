"""A cluster of queuing services under faults, as a model: what does this configuration survive [QS 7]?

Repetition n of a seed is the world of the seed `seed + n`, so that any of them can be looked at alone.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Final

from qsctl.errors import InvalidInput
from qsctl.eventlog.run_folder import Happening, ReplicatedQueue, RuleVerdict
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.model import CHUNK_ROWS, Event, ModelRun, Rows, Stop
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.world.faults.schedule import Schedule, read_schedule
from qsctl.sim.world.results.elections import Elections
from qsctl.sim.world.results.verdict import JudgedWorld, shrink
from qsctl.sim.world.results.world_log import WorldLog
from qsctl.sim.world.services.configuration import instance_name

REPLAY: Final = "world/random-faults/every"
"""Overrides for a replayed schedule: there are no other faults."""


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Check the scenario, lay out the arrays, seed the streams of this replication.

    Raises:
        InvalidInput: no workload or no world, or a schedule that names what there is not.
    """
    if scenario.world is None:
        raise InvalidInput(f"{scenario.name}: there is no world to simulate", remedy="Add a <world>.")
    if scenario.world.schedule:
        scenario = apply_overrides(scenario, read_schedule(Path(scenario.world.schedule)).overrides)
    return WorldRun(dataclasses.replace(scenario, seed=scenario.seed + replication), level, chunk_rows)


class WorldRun:
    """A run of a world. `queue_names` are the names of the log's queue numbers."""

    def __init__(self, scenario: Scenario, level: LogLevel, chunk_rows: int) -> None:
        self._scenario = scenario
        self._level = level
        self._judged = JudgedWorld(scenario)
        world = self._judged.world
        self._log = WorldLog(
            world.queues,
            lambda: min(world.now, scenario.horizon_ns),
            self._judged.ledger,
            warm_up_ns=scenario.warm_up_ns,
            keeps_rows=level is not LogLevel.COUNTERS,
            rows_max=chunk_rows,
        )
        self._elections = Elections(lambda: self.now_ns, self._log.note)
        world.observers.add(self._log, self._elections)
        self._judged.begin()
        for queue, stream in world.replicated_streams().items():
            self._elections.watch(queue, stream)
        self._finished = False
        self.verdicts: tuple[RuleVerdict, ...] = ()
        """The verdict of each rule; at the end."""

    @property
    def now_ns(self) -> Nanoseconds:
        """Simulated up to here."""
        return min(self._judged.world.now, self._scenario.horizon_ns)

    @property
    def messages(self) -> int:
        """Samples that producers had to write."""
        return self._judged.world.offered_count

    @property
    def queue_names(self) -> list[str]:
        """The queues by number: their own names, or the full ones where two are alike."""
        queues = self._judged.world.queues
        names = [queue.name for queue in queues]
        return names if len(set(names)) == len(names) else [queue.full_name for queue in queues]

    @property
    def happenings(self) -> tuple[Happening, ...]:
        """The events of the cluster, each kind once."""
        return self._log.happenings([instance_name(number) for number in self._judged.world.services])

    @property
    def replicated_queues(self) -> tuple[ReplicatedQueue, ...]:
        """Of each replicated queue its masters, and what was refused."""
        world = self._judged.world
        names = {queue.full_name: name for queue, name in zip(world.queues, self.queue_names, strict=True)}
        return self._elections.figures(len(world.services), names)

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive)."""
        until_ns = min(until_ns, self._scenario.horizon_ns)
        judged = self._judged
        while judged.next_instant < until_ns and not judged.is_broken:
            judged.step()
        judged.world.agenda.now = max(judged.world.now, until_ns)
        return Stop.UNTIL

    def take_log(self) -> Rows:
        """Return the rows since the last call."""
        return self._log.collect()

    def take_events(self) -> Rows:
        """Return the events since the last call."""
        rows = self._log.collect_events()
        return rows if self._level is LogLevel.EVENTS else rows[:0]

    def finish(self) -> Stop:
        """Judge the world, and write the rows of its samples."""
        if not self._finished:
            self._finished = True
            if self.now_ns >= self._scenario.horizon_ns:
                self._judged.conclude()
            self._judge()
        return Stop.LOG_FULL if self._log.finish(self._judged.world.held()) else Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return one row a queue: the client is the cluster."""
        assert self._scenario.workload is not None
        return self._log.counters(
            self._scenario.workload.service.application_name,
            self.queue_names,
            max(0, self.now_ns - self._scenario.warm_up_ns),
        )

    def _judge(self) -> None:
        broken = self._judged.broken()
        replay = ""
        if broken and self._judged.faults.steps:
            replay = self._replay(shrink(self._scenario, self._judged.faults, broken))
        found = []
        for number, each in enumerate(self._judged.verdicts(), 1):
            at_ns, first = each.violations[0] if each.violations else (0, "")
            found.append(
                RuleVerdict(
                    rule=each.name,
                    meaning=each.rule,
                    checked=each.checked_count,
                    violations=each.violation_count,
                    first_ns=at_ns,
                    first=first,
                    replay=replay if each.violations else "",
                )
            )
            if each.violations:
                self._log.note(Event.RULE_BROKEN, 0, number)
        self._log.note(Event.LONGEST_STALL, 0, self._judged.counts.longest_stall_ns)
        self.verdicts = tuple(found)

    def _replay(self, faults: Schedule) -> str:
        overrides = {"seed": str(self._scenario.seed), REPLAY: "infinite"}
        return dataclasses.replace(faults, overrides=overrides).text
