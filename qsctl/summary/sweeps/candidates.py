"""The candidates of a sizing: settings that are simulated until their targets are decided.

The replications of all requested candidates are one stream, without a barrier (`_candidate_stream.py`). Each candidate
is evaluated after the same numbers of its own replications, whatever ends in between, so that the answer depends on the
seed, and neither on the number of workers nor on the order in which they end. A candidate that was simulated until one
target was decided is continued if another target is requested. All candidates of a block have the same arrivals, and
results that follow from another candidate's run are not simulated again (`_known_results.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qsctl.sim.figures import Figures
from qsctl.sim.scenario.randomness import is_deterministic
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sizing.memory import memory_bytes
from qsctl.sim.sizing.most_arrivals import most_arrivals
from qsctl.sim.sizing.targets import Target, VariedSetting
from qsctl.sim.sweep import Point, Task, scenario_at
from qsctl.summary.inference.evidence import Knowledge, TargetEvidence, judge, runs_needed
from qsctl.summary.inference.sequential import SequentialAnswer, rounds
from qsctl.summary.sweeps._candidate_stream import CandidateStream, Values
from qsctl.summary.sweeps._known_results import DepthsOfSearch
from qsctl.summary.sweeps.runner import Runner


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings that were simulated, and the evidence on each target."""

    values: Values
    replications: int
    evidence: tuple[TargetEvidence, ...]
    memory_bytes: int

    @property
    def met(self) -> bool:
        """Return whether every target is met with the requested confidence."""
        return all(each.met for each in self.evidence)


@dataclass(slots=True)
class _Trial:
    """The replications of one candidate so far."""

    point: Point
    memory: int
    known: Knowledge
    first: int
    """The number of its first replication; each block of candidates has its own arrivals."""
    figures: list[tuple[Figures, ...]] = field(default_factory=list)
    """Figures of its replications in order, as many as at its last evaluation."""
    early: dict[int, tuple[Figures, ...]] = field(default_factory=dict)
    """Figures of further replications, which were simulated because a worker was idle."""
    judged: Candidate | None = None


@dataclass(slots=True)
class Candidates:
    """The candidates tried so far, in order, and the simulation of further ones."""

    scenario: Scenario
    settings: tuple[VariedSetting, ...]
    targets: tuple[Target, ...]
    confidence: float
    error: float
    """The error probability of the statements about one candidate."""
    most_replications: int
    stated: dict[tuple[str, str], float]
    runner: Runner
    report: Callable[[Candidate], None]
    tried: dict[Values, Candidate] = field(default_factory=dict)
    _trials: dict[Values, _Trial] = field(default_factory=dict)
    _depths: DepthsOfSearch = field(init=False)

    def __post_init__(self) -> None:
        self._depths = DepthsOfSearch.of(self.scenario, self.settings)

    def point(self, values: Sequence[int]) -> Point:
        """Return the sweep point of a candidate's settings."""
        return Point(
            tuple(
                (setting.path, setting.value_text(value)) for setting, value in zip(self.settings, values, strict=True)
            )
        )

    def meets(self, values: Sequence[int], about: Sequence[Target] = (), block: int = 0) -> bool:
        """Return whether a candidate meets these targets (empty: all), after simulating until they are decided."""
        about = about or self.targets
        place = tuple(values)
        self.simulate([place], about, block)
        return all(each.met for each in self.tried[place].evidence if each.target in about)

    def simulate(self, places: Sequence[Values], about: Sequence[Target] = (), block: int = 0) -> None:
        """Simulate candidates, each until one of these targets (empty: all) is missed or all are decided."""
        about = about or self.targets
        for values in places:
            if values not in self._trials:
                self._trials[values] = self._trial(values, block)
        looks = list(rounds(self.most_replications, [runs_needed(target, self.error) for target in self.targets]))
        untried = [values for values in dict.fromkeys(places) if values not in self.tried]
        untried.reverse()

        def next_look(values: Values) -> int | None:
            """Return the number of replications at a candidate's next evaluation; None if it is decided."""
            trial = self._trials[values]
            for wanted in looks:
                if self._enough(values, about):
                    break
                at = 1 if self.is_fixed(values) else wanted
                if at > len(trial.figures):
                    return at
                if trial.judged is None or trial.judged.replications < len(trial.figures):
                    self._judge(values)
            return None

        def show() -> None:
            """Add the evaluated candidates to the result, in the order in which they were requested."""
            while untried and (judged := self._trials[untried[-1]].judged) is not None:
                self.tried[untried.pop()] = judged
                self.report(judged)

        def looked_at(values: Values, aim: int) -> int | None:
            """Evaluate a candidate with its replications up to `aim`; return the number of the next evaluation."""
            trial = self._trials[values]
            trial.figures += [trial.early.pop(number) for number in range(len(trial.figures), aim)]
            self._judge(values)
            show()
            return next_look(values)

        stream = CandidateStream(self.runner, looks, self._task, self._known)
        for values in dict.fromkeys(places):
            aim = next_look(values)
            if aim is not None:
                trial = self._trials[values]
                stream.add(values, len(trial.figures), aim, trial.early)
        show()
        stream.run(looked_at)

    def restate(self, error: float) -> None:
        """Evaluate every candidate again with another error probability."""
        self.error = error
        for values in self.tried:
            self._judge(values)

    def is_fixed(self, values: Values) -> bool:
        """Return whether a candidate's scenario is deterministic, so that one replication is enough."""
        return self._trials[values].known.exact

    def _task(self, values: Values, number: int) -> Task:
        trial = self._trials[values]
        return Task(trial.point, trial.first + number, self.scenario.seed)

    def _known(self, values: Values, number: int) -> tuple[Figures, ...] | None:
        """Return the figures of a replication that follow from another candidate's replication; None if none do."""
        first = self._trials[values].first
        return self._depths.result(
            values,
            (
                (other, trial.figures[number])
                for other, trial in self._trials.items()
                if trial.first == first and number < len(trial.figures)
            ),
        )

    def _trial(self, values: Values, block: int) -> _Trial:
        point = self.point(values)
        changed = scenario_at(self.scenario, point)
        queues = {target.queue for target in self.targets}
        known = Knowledge(
            is_deterministic(changed), {queue: most_arrivals(changed, queue) for queue in queues}, self.stated
        )
        return _Trial(point, memory_bytes(changed), known, block * self.most_replications)

    def _judge(self, values: Values) -> None:
        """Set the evidence from a candidate's replications."""
        trial = self._trials[values]
        evidence = tuple(
            judge(target, trial.figures, self.confidence, self.error, self.most_replications, trial.known)
            for target in self.targets
        )
        trial.judged = Candidate(values, len(trial.figures), evidence, trial.memory)
        if values in self.tried:
            self.tried[values] = trial.judged

    def _enough(self, values: Values, about: Sequence[Target]) -> bool:
        """Return whether a candidate's replications decide these targets, or are the last permitted ones."""
        judged = self._trials[values].judged
        if judged is None:
            return False
        asked = [each for each in judged.evidence if each.target in about]
        missed = any(each.answer is SequentialAnswer.REFUSED or each.given_up for each in asked)
        return missed or all(each.decided for each in asked) or self.is_fixed(values)
