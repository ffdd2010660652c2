"""The model `world`: a cluster of queuing services under faults, and which of them its configuration survives [QS 7].

Repetition n of a seed is the world of the seed `seed + n`, so that each can be rerun alone.
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
"""Path of the value that a replayed schedule sets to infinite, so that no other faults are drawn."""


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Check the scenario, and prepare the repetition of this number.

    Raises:
        InvalidInput: no workload or no world, or a schedule that names a node or queue that does not exist.
    """
    if scenario.world is None:
        raise InvalidInput(f"{scenario.name}: there is no world to simulate", remedy="Add a <world>.")
    if scenario.world.schedule:
        scenario = apply_overrides(scenario, read_schedule(Path(scenario.world.schedule)).overrides)
    return WorldRun(dataclasses.replace(scenario, seed=scenario.seed + replication), level, chunk_rows)


class WorldRun:
    """A run of a world; `queue_names` are the names behind the queue numbers of the log."""

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
        """The verdict on each rule; empty until the run is finished."""

    @property
    def now_ns(self) -> Nanoseconds:
        """Return the instant up to which the run is simulated."""
        return min(self._judged.world.now, self._scenario.horizon_ns)

    @property
    def messages(self) -> int:
        """Return the number of samples that producers were given to write."""
        return self._judged.world.offered_count

    @property
    def queue_names(self) -> list[str]:
        """Return the queues' names by number: their short names, or all full names where two short ones are equal."""
        queues = self._judged.world.queues
        names = [queue.name for queue in queues]
        return names if len(set(names)) == len(names) else [queue.full_name for queue in queues]

    @property
    def happenings(self) -> tuple[Happening, ...]:
        """Return the events of the cluster, summed by kind."""
        return self._log.happenings([instance_name(number) for number in self._judged.world.services])

    @property
    def replicated_queues(self) -> tuple[ReplicatedQueue, ...]:
        """Return one row per replicated queue: its masters, its refusals, and its time without a master."""
        world = self._judged.world
        names = {queue.full_name: name for queue, name in zip(world.queues, self.queue_names, strict=True)}
        return self._elections.figures(len(world.services), names)

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate up to an instant, which is excluded."""
        until_ns = min(until_ns, self._scenario.horizon_ns)
        judged = self._judged
        while judged.next_instant < until_ns and not judged.is_broken:
            judged.step()
        judged.world.agenda.now = max(judged.world.now, until_ns)
        return Stop.UNTIL

    def take_log(self) -> Rows:
        """Return the log's rows since the last call."""
        return self._log.collect()

    def take_events(self) -> Rows:
        """Return the log's events since the last call; none unless the run logs events."""
        rows = self._log.collect_events()
        return rows if self._level is LogLevel.EVENTS else rows[:0]

    def finish(self) -> Stop:
        """Judge the world, and write the rows of its samples; LOG_FULL asks to collect them and call again."""
        if not self._finished:
            self._finished = True
            if self.now_ns >= self._scenario.horizon_ns:
                self._judged.conclude()
            self._judge()
        return Stop.LOG_FULL if self._log.finish(self._judged.world.held()) else Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return the columns of counters, one row per queue; the client is the whole cluster."""
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
