"""Schedules of random faults that are drawn towards states which few seeds reach.

Some trials are new seeds of a kind: as drawn, or with the weights of the faults skewed and some of them 0 (swarm
testing), or in a third of the time, so that elections make up most of it. The others are mutations of schedules whose
worlds had a feature that none had before them (`moments.Moments.features`): steps are moved, repeated, left out, aimed
at another service, or come from the schedule of another trial. Schedules with rare features are mutated more often.

Every trial is reproducible by its text: the kind and the seed in a comment, and the lines of the schedule.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from qsctl.errors import InvalidInput
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.sim.scenario.parts.world import RandomFaults
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.world.faults.schedule import Schedule, Step, parse_schedule
from qsctl.sim.world.faults.vocabulary import Verb
from qsctl.sim.world.results.verdict import JudgedWorld
from tests.world import kinds

KINDS: Final[Mapping[str, Callable[[int], Scenario]]] = {
    each.__name__: each
    for each in (
        kinds.three, kinds.five, kinds.three_unsynchronized, kinds.volatile, kinds.compacting, kinds.lifespans,
        kinds.dead_letters, kinds.dead_letters_compacting, kinds.administered, kinds.two, kinds.four,
        kinds.replaced, kinds.replaced_in_order, kinds.replaced_with_dead_letters, kinds.bereft, kinds.survivors,
        kinds.visited, kinds.brief, kinds.swarm, kinds.large, kinds.preferring, kinds.changing, kinds.upgraded,
        kinds.witnessed, kinds.contested, kinds.held, kinds.alone, kinds.alone_with_dead_letters,
        kinds.gathering, kinds.gathering_three,
    )
}  # fmt: skip

HURRIED: Final = "hurried-"
"""Before the name of a kind: its worlds last a third of the time."""

NEW_SHARE: Final = 0.3
"""Of the trials, those that are no mutations."""

STEPS_MAX: Final = 80
SHAPES: Final = 30
"""Seeds of a kind that differ by a multiple of this have clusters of one size."""

_LOSSES: Final = frozenset({Verb.LOSE_DISK, Verb.NEW_DISK, Verb.FLIP_BIT, Verb.DESTROY})


class Trial(NamedTuple):
    """One world; without faults of its own it has those that its seed draws."""

    kind: str
    seed: int
    faults: Schedule | None = None

    def scenario(self) -> Scenario:
        """Return the scenario of its kind and seed."""
        scenario = KINDS[self.kind.removeprefix(HURRIED)](self.seed)
        return kinds.hurried(scenario) if self.kind.startswith(HURRIED) else scenario

    def world(self) -> JudgedWorld:
        """Return its world."""
        return JudgedWorld(self.scenario(), self.faults)

    def text(self, *remarks: str) -> str:
        """Return what `trial_of` reads; it ignores the remarks."""
        steps = Schedule() if self.faults is None else self.faults
        return dataclasses.replace(steps, comments=(f"{self.kind} {self.seed}", *remarks)).text


def trial_of(text: str) -> Trial:
    """Return the trial of a text."""
    schedule = parse_schedule(text.splitlines(), "trial")
    kind, seed = schedule.comments[0].split()
    return Trial(kind, int(seed), schedule)


class _Found(NamedTuple):
    trial: Trial
    steps: tuple[Step, ...]
    features: frozenset[str]


class Steering:
    """The choice of the next trial by the features of those before.

    Args:
        random: draws everything.
        names: the kinds of worlds, in turn.
        first: the seed of the first trial.
    """

    def __init__(self, random: Random, names: Sequence[str], first: int = 1) -> None:
        self._random = random
        self._names = names
        self._seed = first - 1
        self.met: Counter[str] = Counter()
        """How many trials had each feature."""
        self._found: list[_Found] = []

    def next(self) -> Trial:
        """Return the next trial."""
        if not self._found or self._random.random() < NEW_SHARE:
            return self._new()
        weights = [sum(1 / self.met[each] for each in found.features) for found in self._found]
        base = self._random.choices(self._found, weights)[0]
        return self._mutated(base)

    def learn(self, trial: Trial, steps: tuple[Step, ...], features: Iterable[str]) -> None:
        """Note what a trial met; one with a new feature is mutated from now on.

        In volatile clusters a crash is a loss, which its steps do not show: their schedules stay as they were drawn.
        """
        had = frozenset(features)
        is_volatile = trial.kind.removeprefix(HURRIED) == kinds.volatile.__name__
        if not is_volatile and any(each not in self.met for each in had):
            self._found.append(_Found(trial, steps, had))
        self.met.update(had)

    def _new(self) -> Trial:
        self._seed += 1
        kind = self._names[self._seed % len(self._names)]
        trial = Trial(self._random.choice(("", HURRIED, HURRIED)) + kind, self._seed)
        scenario = trial.scenario()
        assert scenario.world is not None
        if scenario.world.faults is None or self._random.random() < 0.4:
            return trial
        skewed = dataclasses.replace(scenario.world, faults=self._skewed(scenario.world.faults))
        return trial._replace(faults=JudgedWorld(dataclasses.replace(scenario, world=skewed)).faults)

    def _skewed(self, faults: RandomFaults) -> RandomFaults:
        """Return the faults with other weights, those of some kinds 0."""
        every_ns = int(faults.every_ns * self._random.choice((0.5, 1, 1, 2)))
        weights = {
            each.name: getattr(faults, each.name) * self._random.choice((0.0, 0.0, 1.0, 1.0, 3.0))
            for each in dataclasses.fields(faults)
            if each.name != "every_ns"
        }
        return dataclasses.replace(faults, every_ns=every_ns, **weights)

    def _mutated(self, base: _Found) -> Trial:
        kind, seed, _ = base.trial
        if self._random.random() < 0.3 and kind.removeprefix(HURRIED) != kinds.swarm.__name__:
            seed += SHAPES * self._random.randint(1, 1000)
        trial = Trial(kind, seed)
        steps = [*base.steps]
        donors = [each for each in self._found if each.trial.kind.removeprefix(HURRIED) == kind.removeprefix(HURRIED)]
        for _ in range(self._random.choice((1, 2, 4))):
            steps = self._changed(steps, self._random.choice(donors).steps)
        try:
            return trial._replace(faults=_permitted(steps, trial.scenario()))
        except InvalidInput:  # a step of the other schedule names what this world does not have
            return base.trial._replace(seed=seed, faults=_permitted(base.steps, trial.scenario()))

    def _changed(self, steps: list[Step], others: Sequence[Step]) -> list[Step]:
        random = self._random
        begin = random.randrange(max(1, len(steps)))
        end = min(len(steps), begin + random.choice((1, 1, 2, 5)))
        part, rest = steps[begin:end], steps[:begin] + steps[end:]
        by_ns = int(random.choice((-1, 1)) * 10 ** random.uniform(0, 3) * MILLISECOND_NS)
        match random.randrange(6):
            case 0:
                return rest
            case 1:
                return rest + _moved(part, by_ns)
            case 2:
                return steps + _moved(part, by_ns)
            case 3:
                return steps[:begin] + _moved(steps[begin:], by_ns)
            case 4:
                number = str(random.randint(1, 5))
                return rest + [_aimed(each, number) for each in part]
            case _:
                begin = random.randrange(max(1, len(others)))
                return [*steps, *others[begin : begin + random.choice((1, 2, 5, 20))]]


def _moved(steps: Sequence[Step], by_ns: Nanoseconds) -> list[Step]:
    return [dataclasses.replace(each, at_ns=max(0, (each.at_ns or 0) + by_ns) // 1000 * 1000) for each in steps]


def _aimed(step: Step, number: str) -> Step:
    """Return a step at another service, if it is at one."""
    if not step.arguments or not step.arguments[0].isdecimal():
        return step
    return dataclasses.replace(step, arguments=(number, *step.arguments[1:]))


def _permitted(steps: Iterable[Step], scenario: Scenario) -> Schedule:
    """Return the steps in order, without those by which accepted samples may be lost by the rule of the quorum.

    Raises:
        InvalidInput: a step names what the world does not have.
    """
    world = JudgedWorld(scenario, Schedule()).world
    assert world.declared.faults is not None
    minority = (len(world.services) - 1) // 2
    in_time = (each for each in steps if (each.at_ns or 0) < world.load_until_ns)
    ordered = sorted(in_time, key=lambda each: each.at_ns or 0)
    has_witness = world.declared.witness_instance > 0
    if has_witness or any(each.verb is Verb.MEMBER for each in ordered):
        minority = 0  # the voters, or those with payloads, may be fewer
    lossy: set[str] = set()
    kept: list[Step] = []
    for step in ordered[:STEPS_MAX]:
        if has_witness and step.verb is Verb.VERSION:
            continue  # to one that knows no witness, perhaps
        if step.verb in _LOSSES and not (step.verb is Verb.LOSE_DISK and world.declared.faults.majorities):
            if len(lossy | {step.arguments[0]}) > minority:
                continue
            lossy.add(step.arguments[0])
            if step.verb is Verb.FLIP_BIT:  # in what was synced before the process ended
                kept.append(Step(Verb.CRASH, None, step.arguments, step.at_ns))
        kept.append(step)
    schedule = Schedule(tuple(kept))
    JudgedWorld(scenario, schedule)
    return schedule
