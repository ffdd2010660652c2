"""A world run to its end and judged: a verdict for each invariant, the fingerprint of its history, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from qsctl.core.queue.settings import PersistenceKind
from qsctl.core.settings import queues_by_name
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.world._director import Director
from qsctl.sim.world._world import World
from qsctl.sim.world.faults.random_faults import FaultGenerator
from qsctl.sim.world.faults.schedule import Schedule, read_schedule
from qsctl.sim.world.faults.vocabulary import Verb
from qsctl.sim.world.invariants.base import Invariant, Ledger
from qsctl.sim.world.invariants.configuration import SameConfiguration
from qsctl.sim.world.invariants.deliveries import AttemptsAsConfigured, OneDeliveryWithoutTheFlag, ThresholdHolds
from qsctl.sim.world.invariants.liveness import QueuesDrain
from qsctl.sim.world.invariants.replicas import CommittedIsNeverOverwritten, OneMasterAnEpoch
from qsctl.sim.world.invariants.samples import (
    AcceptedIsNeverLost,
    AnswersOfProducers,
    DeliveredWasSent,
    RefusedIsNeverDelivered,
    WritingAgainChangesNothing,
)
from qsctl.sim.world.invariants.stores import DurableBeforeAccepted, RestartGivesAPrefix
from qsctl.sim.world.invariants.strangers import StrangersChangeNothing
from qsctl.sim.world.results._client_view import ClientView
from qsctl.sim.world.results._figures import Counts, WorldFigures

SCHEDULE_UNMET: Final = "schedule"
"""Name of the verdict on a schedule whose conditions were not all met."""

LOOKS_EVERY_NS: Final[Nanoseconds] = MILLISECOND_NS
"""Resolution of the measured time without progress."""

STEPS_AT_INSTANT_MAX: Final = 20_000
"""Steps at one instant beyond which a world counts as an endless loop."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one invariant."""

    name: str
    rule: str
    checked_count: int
    violation_count: int
    violations: tuple[tuple[Nanoseconds, str], ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether the invariant was never violated."""
        return self.violation_count == 0


class JudgedWorld:
    """A world with its judges, stepped until its end.

    Args:
        scenario: of model `world`.
        faults: replaces the random faults that the scenario declares.

    Raises:
        InvalidInput: the scenario or the schedule cannot be simulated.
    """

    def __init__(self, scenario: Scenario, faults: Schedule | None = None) -> None:
        self.world = world = World(scenario)
        self.faults = random_schedule(world) if faults is None else faults
        """The random faults as a schedule, or those given instead."""
        declared = world.declared
        schedules = [self.faults]
        if declared.schedule:
            schedules.append(read_schedule(Path(declared.schedule)))
        clock = self._clock
        self.ledger = ledger = Ledger()
        answers = AnswersOfProducers()
        self._figures = WorldFigures(clock, world.producers)
        self.invariants: list[Invariant] = invariants_of(world, ledger)
        world.observers.add(ledger, answers, self._figures, *self.invariants)
        for invariant in self.invariants:
            invariant.on_violation = self._note_broken
        self._director = Director(world, schedules, ledger, answers)
        self._is_over = False
        self._failed: list[tuple[Nanoseconds, str]] = []
        self._is_rule_broken = False
        self._steps_at_instant = 0
        self._looks_at_ns: Nanoseconds = 0

    def begin(self) -> None:
        """Apply the immediate lines of the schedules, and start the services, the programs and the load."""
        self._director.set_up()
        self.world.begin()
        self._director.go_on()

    @property
    def counts(self) -> Counts:
        """Return the measures so far."""
        return self._figures.counts

    @property
    def done_counts(self) -> Mapping[Verb, int]:
        """Return the number of times that each action was applied to the world."""
        return self._director.done_counts

    @property
    def next_instant(self) -> Nanoseconds:
        """Return the instant of the next event; infinite if there is none."""
        return self.world.agenda.next_instant

    def step(self) -> None:
        """Advance the world by one event, then apply the lines of schedules that are due."""
        agenda = self.world.agenda
        instant = agenda.now
        try:
            agenda.step()
            if self._director.awaits:
                self._director.go_on()
        except (AssertionError, LookupError) as error:
            self._failed.append((self.world.now, str(error) or f"{type(error).__name__} without a message"))
        self._steps_at_instant = self._steps_at_instant + 1 if agenda.now == instant else 0
        if self._steps_at_instant > STEPS_AT_INSTANT_MAX:
            self._failed.append(
                (self.world.now, "events are due again and again at one instant, and time does not advance")
            )
        if agenda.now >= self._looks_at_ns:
            self._looks_at_ns = agenda.now + LOOKS_EVERY_NS
            self._figures.look()

    def run(self) -> None:
        """Run the world to the horizon or its first violation, and judge it."""
        self.begin()
        horizon_ns = self.world.scenario.horizon_ns
        agenda = self.world.agenda
        while agenda.next_instant < horizon_ns and not self.is_broken:
            self.step()
        self.conclude()

    @property
    def is_broken(self) -> bool:
        """Return whether a rule was violated or an assertion failed; neither is ever undone."""
        return self._is_rule_broken or bool(self._failed)

    def conclude(self) -> None:
        """Let the rules about the end of the world be tested, once; unless it is broken already."""
        if not self._is_over:
            self._is_over = True
            if not self.is_broken:
                self._director.conclude()
                self.world.conclude()

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts on all invariants, in their order, on assertions, and on unmet schedules."""
        found = [
            Verdict(each.name, each.rule, each.checked_count, each.violation_count, tuple(each.violations))
            for each in sorted(self.invariants, key=lambda each: (len(each.name), each.name))
        ]
        found.append(
            Verdict("core", "no service finds itself in an impossible state", 1, len(self._failed), tuple(self._failed))
        )
        if self._director.unmet:
            at_ns = self.world.now
            lines = tuple((at_ns, line) for line in self._director.unmet)
            found.append(
                Verdict(SCHEDULE_UNMET, "every line of the schedule that waits is met", len(lines), len(lines), lines)
            )
        return tuple(found)

    def broken(self) -> list[str]:
        """Return the names of the invariants that do not hold."""
        return [each.name for each in self.verdicts() if not each.holds]

    def _clock(self) -> Nanoseconds:
        return self.world.agenda.now

    def _note_broken(self) -> None:
        self._is_rule_broken = True


def invariants_of(world: World, ledger: Ledger) -> list[Invariant]:
    """Return the invariants that apply to this world."""

    def clock() -> Nanoseconds:
        return world.now

    settings = queues_by_name(world.services[1].settings)
    stored = {name: each for name, each in settings.items() if each.persistence.kind is PersistenceKind.PERSISTENT}
    quorums = {name: len(world.services) // 2 + 1 if each.replication.enabled else 1 for name, each in stored.items()}
    incarnations, administrator = world.incarnations, world.administrator
    committed = CommittedIsNeverOverwritten(clock, world.services, ledger, incarnations)
    configuration = [SameConfiguration(clock, world)] if world.declared.replicates_configuration else []
    return [
        *configuration,
        AcceptedIsNeverLost(clock, lambda: chain(ledger.records(), committed.records()), world.held, administrator),
        DeliveredWasSent(clock, administrator),
        RefusedIsNeverDelivered(clock, len(world.services)),
        OneDeliveryWithoutTheFlag(clock, incarnations),
        OneMasterAnEpoch(clock, incarnations),
        committed,
        DurableBeforeAccepted(
            clock, ledger, quorums, lambda number, queue: world.voters(world.services[number], queue)
        ),
        ThresholdHolds(clock, settings),
        AttemptsAsConfigured(clock, settings, ledger),
        RestartGivesAPrefix(clock, world.services),
        WritingAgainChangesNothing(clock, ledger),
        QueuesDrain(clock, world),
        ClientView(clock, settings, world),
        StrangersChangeNothing(clock),
    ]


def random_schedule(world: World) -> Schedule:
    """Return the random faults of a world as a schedule; empty if its scenario declares none."""
    declared = world.declared.faults
    if declared is None:
        return Schedule()
    queues = list(queues_by_name(world.services[1].settings).values())
    return FaultGenerator(
        world.random("faults"),
        declared,
        len(world.services),
        list(world.programs),
        [queue.name for queue in queues if not queue.is_dead_letter],
        is_volatile=any(
            queue.replication.enabled and queue.persistence.kind is PersistenceKind.VOLATILE for queue in queues
        ),
        changes_configuration=world.declared.replicates_configuration,
        until_ns=world.load_until_ns,
    ).schedule()


def judge(scenario: Scenario, faults: Schedule | None = None) -> JudgedWorld:
    """Run a world to its end and return it with its verdicts; `faults` replaces the scenario's random ones."""
    judged = JudgedWorld(scenario, faults)
    judged.run()
    return judged


def shrink(scenario: Scenario, faults: Schedule, broken: Sequence[str]) -> Schedule:
    """Return a shorter schedule that breaks one of the same invariants, by leaving out parts as long as it does.

    The lines of random faults have instants and no conditions, so that any part of them is a schedule, too. Halves are
    left out first, then smaller parts (delta debugging); this takes several times as many runs as there are lines.
    """
    steps = list(faults.steps)
    part = max(1, len(steps) // 2)
    while steps:
        at = 0
        is_shorter = False
        while at < len(steps):
            fewer = steps[:at] + steps[at + part :]
            if set(judge(scenario, replace(faults, steps=tuple(fewer))).broken()) & set(broken):
                steps = fewer
                is_shorter = True
            else:
                at += part
        if part == 1 and not is_shorter:
            break
        part = max(1, part // 2)
    return replace(faults, steps=tuple(steps))
