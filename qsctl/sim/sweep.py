"""The plan of a sweep: its grid of points, the seed of each point, and the work of one task.

Imports nothing of Spark: `qsctl.summary.sweeps.sweep` distributes the tasks. A point is identified by its values, not
by its position in the grid, so that a larger grid reuses the results of a smaller one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.errors import InvalidInput, QsctlError, UsageError
from qsctl.sim.figures import Figures
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.overrides.short_paths import whole_path
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario

SEED_BITS: Final = 48
MOST_POINTS: Final = 1_000_000
SWEEP_FORMAT: Final = 5
"""Of a sweep's folder; format 1 had no checksums, 2 no figures of clusters, 3 no times to done, 4 none of brokers'
queues."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One varied value: its path in the scenario and its values as texts, in order."""

    path: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values. `key` is the same for the same values in any grid."""

    values: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """A short name derived from the values alone."""
        text = json.dumps(sorted(self.values), ensure_ascii=False, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def __str__(self) -> str:
        return ", ".join(f"{path}={value}" for path, value in self.values) or "the scenario as it is"


@dataclass(frozen=True, slots=True)
class Task:
    """One repetition at one point: with the scenario, the whole input of a worker."""

    point: Point
    replication: int
    seed: int


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A scenario, a grid, and the number of repetitions of each point.

    `common_random_numbers`: all points see the same arrivals, so that they differ by their settings alone; otherwise
    each point has a seed of its own.
    """

    scenario: Scenario
    axes: tuple[Axis, ...]
    replications: int
    common_random_numbers: bool = False

    @property
    def task_count(self) -> int:
        """The number of repetitions of all points together."""
        return self.replications * math.prod(len(axis.values) for axis in self.axes)

    def points(self) -> Iterator[Point]:
        """Yield every combination, the last axis changing fastest."""
        for values in itertools.product(*(axis.values for axis in self.axes)):
            yield Point(tuple(zip((axis.path for axis in self.axes), values, strict=True)))

    def variants(self) -> Iterator[Scenario]:
        """Yield the scenario with each value of each axis, the other axes at their first values.

        Together these scenarios name every file that any point names.
        """
        first = {axis.path: axis.values[0] for axis in self.axes}
        for axis in self.axes:
            for value in axis.values:
                yield apply_overrides(self.scenario, first | {axis.path: value})

    def tasks(self) -> Iterator[Task]:
        """Yield a task for every repetition of every point."""
        for point in self.points():
            seed = self.scenario.seed if self.common_random_numbers else point_seed(self.scenario.seed, point)
            for replication in range(self.replications):
                yield Task(point, replication, seed)


def point_seed(seed: int, point: Point) -> int:
    """Return the seed of a point, derived from the sweep's seed and the point's values alone."""
    digest = hashlib.blake2b(f"{seed} {point.key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes of texts of the form `path=v1,v2,…`, where a path may be the short name of a setting.

    Raises:
        UsageError: a text has another form, or a value or a path occurs twice.
    """
    axes: list[Axis] = []
    for text in texts:
        given, values = _split(text)
        path = whole_path(given)
        if not path or not values or not all(values):
            raise UsageError(
                f"--grid {text!r} is not PATH=VALUE,VALUE,…",
                remedy="Write it as in --grid 'profile[default]/queue[D-1]/max-depth=1000,2000,4000'.",
            )
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise UsageError(f"--grid {path} has {twice!r} twice")
        if any(axis.path == path for axis in axes):
            raise UsageError(f"--grid names {path} twice", remedy="Put all its values behind one.")
        axes.append(Axis(path, values))
    return tuple(axes)


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the path and the values, split at the first `=` outside brackets; a name in `[…]` may contain one."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth <= 0:
            return text[:at].strip(), tuple(value.strip() for value in text[at + 1 :].split(","))
    return text.strip(), ()


def plan_sweep(
    scenario: Scenario, axes: Sequence[Axis], replications: int, *, common_random_numbers: bool = False
) -> SweepPlan:
    """Return the plan of a sweep whose points have all been checked.

    Raises:
        UsageError: fewer than one repetition, too many points, or a path that names no setting.
        InvalidInput: a value that the scenario cannot have; the message names the point.
    """
    if replications < 1:
        raise UsageError(f"{replications} replications: there must be one or more")
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > MOST_POINTS:
        raise UsageError(f"the grid has {count} points; at most {MOST_POINTS} are allowed")
    plan = SweepPlan(scenario, tuple(axes), replications, common_random_numbers)
    for point in plan.points():
        scenario_at(scenario, point)
    return plan


def scenario_at(scenario: Scenario, point: Point) -> Scenario:
    """Return the scenario with a point's values.

    Raises:
        UsageError: a path names no setting.
        InvalidInput: the values cannot be simulated; the message names the point.
    """
    changed = apply_overrides(scenario, dict(point.values))
    try:
        check_rules(changed)
    except QsctlError as error:
        raise InvalidInput(f"{point}: {error.message}", remedy=error.remedy) from None
    return changed


def run_task(
    scenario: Scenario, task: Task, placed: Callable[[Scenario], Scenario] = lambda scenario: scenario
) -> list[Figures]:
    """Simulate one repetition at one point and return its figures, one row a queue.

    A pure function of its arguments: a retry on any machine returns the same. Arrivals are drawn once in a process for
    all points that see the same ones.

    Args:
        scenario: the scenario of the sweep.
        task: the point and the number of the repetition.
        placed: replaces the files that a scenario names by this machine's copies.
    """
    from qsctl.sim.arrivals.remembered import remembering
    from qsctl.sim.replication import simulate_figures

    changed = dataclasses.replace(apply_overrides(scenario, dict(task.point.values)), seed=task.seed)
    with remembering():
        return simulate_figures(placed(changed), task.replication)


def plan_document(plan: SweepPlan, digest: str) -> Mapping[str, object]:
    """Return the document that describes a sweep in its folder; a later call may add only points and repetitions."""
    return {
        "format": SWEEP_FORMAT,
        "scenario": plan.scenario.name,
        "scenario_digest": digest,
        "seed": plan.scenario.seed,
        "common_random_numbers": plan.common_random_numbers,
        "replications": plan.replications,
        "axes": [{"path": axis.path, "values": list(axis.values)} for axis in plan.axes],
    }
