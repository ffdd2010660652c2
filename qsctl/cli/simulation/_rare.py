"""`qsctl simulate --rare`: estimate the probability or rate of events that ordinary runs never contain."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from qsctl.cli.confirmation import agree_to_cost
from qsctl.cli.simulation.progress.run_progress import stop_on_interrupt
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.cli.simulation.results.rare import RareResult
from qsctl.errors import Interrupted, InvalidInput, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from qsctl.sim.scenario.scenario import Scenario
    from qsctl.sim.splitting.levels import LevelPlan
    from qsctl.sim.splitting.question import Question
    from qsctl.sim.splitting.restart import SplitRun

USUAL_PRECISION: Final = 0.2
_PRECISION: Final = re.compile(r"\s*([0-9.]+)\s*%\s*")
_PILOTS_MAX: Final = 160
"""Number of pilot runs without the event after which no more are tried."""


def simulate_rare(
    scenario: Scenario,
    text: str,
    *,
    replications: int | None,
    precision: list[str] | None,
    confidence: float,
    workers: int,
    yes: bool,
    reproduce: str,
) -> RareResult:
    """Estimate a rare figure of a scenario by splitting.

    Args:
        scenario: the scenario to simulate.
        text: the value of `--rare`.
        replications: the number of split runs; None for as many as the precision needs.
        precision: the value of `--precision`.
        confidence: of the interval.
        workers: the number of processes.
        yes: whether the question before a long computation is skipped.
        reproduce: the command that repeats the estimate.

    Raises:
        UsageError: the question or the precision is not of its form.
        InvalidInput: the scenario has no such queue, its queue has no limit, or nothing in it is random.
        Interrupted: the user or the calling program ended it.
    """
    from qsctl.sim.scenario.randomness import is_deterministic
    from qsctl.sim.splitting.branchable import trajectory_of
    from qsctl.sim.splitting.levels import plan_levels
    from qsctl.sim.splitting.question import no_limit, parse_question
    from qsctl.sim.splitting.samples import draw_samples
    from qsctl.summary.sweeps.cost import Cost
    from qsctl.summary.sweeps.rare import draw_enough, estimate, samples_needed

    question = parse_question(text)
    wanted = _precision(precision)
    if is_deterministic(scenario):
        raise InvalidInput(
            f"--rare: nothing in {scenario.name} is random, so that each run is the same",
            remedy="Simulate it once, without --rare.",
        )
    most = trajectory_of(scenario, 0, question).most
    if most <= 0:
        raise no_limit(question.queue)
    began = time.monotonic()
    with stop_on_interrupt() as stopped:
        plan = plan_levels(scenario, question, most, stopped)
        pilots: list[SplitRun] | None = []
        pilots_began = time.monotonic()
        if plan is not None and plan.is_whole:
            pilots = _pilots(scenario, question, plan, stopped)
        if plan is None or pilots is None:
            raise Interrupted(_STOPPED)
        seconds = (time.monotonic() - pilots_began) / max(1, len(pilots))
        samples: list[SplitRun] | None = []
        if any(sample.value > 0.0 for sample in pilots):
            count = replications or samples_needed(pilots, confidence, wanted)
            used = min(workers, max(1, int(count * seconds / _WORKER_SECONDS)), count)
            agree_to_cost(Cost(count, count * seconds / used), yes=yes)
            with task_progress("split runs") as show_progress:

                def draw(first: int, count: int) -> list[SplitRun] | None:
                    return draw_samples(
                        scenario, question, plan.levels, count, first=first, workers=used, stop=stopped,
                        progress=lambda done: show_progress(first + done, first + count),
                    )  # fmt: skip

                samples = draw(0, count) if replications else draw_enough(draw, count)
        if samples is None:
            raise Interrupted(_STOPPED)
    return RareResult(
        scenario=scenario.name,
        model=str(scenario.model),
        seed=scenario.seed,
        question=question,
        confidence=confidence,
        precision=wanted,
        thresholds=plan.levels.thresholds,
        factors=plan.levels.factors,
        reached=plan.reached,
        most=plan.most,
        pilot_messages=plan.messages + sum(sample.messages for sample in pilots),
        plain_messages=sum(sample.plain_messages for sample in samples) / max(1, len(samples)),
        estimate=estimate(samples, question, confidence) if samples else None,
        elapsed_s=time.monotonic() - began,
        reproduce=reproduce,
    )


_STOPPED: Final = "stopped before there was an estimate: split runs are kept in no folder"

_WORKER_SECONDS: Final = 3.0
"""Seconds of work that justify starting a process."""


def _pilots(scenario: Scenario, question: Question, plan: LevelPlan, stop: Callable[[], bool]) -> list[SplitRun] | None:
    """Return pilot runs, at least `PILOTS`, until one contains the event; None if stopped."""
    from qsctl.sim.splitting.levels import pilot_samples
    from qsctl.summary.sweeps.rare import PILOTS

    found: list[SplitRun] = []
    count = PILOTS
    while len(found) < _PILOTS_MAX and not any(sample.value > 0.0 for sample in found):
        more = pilot_samples(scenario, question, plan, len(found), count, stop)
        if more is None:
            return None
        found += more
        count = len(found)
    return found


def _precision(texts: list[str] | None) -> float:
    if not texts:
        return USUAL_PRECISION
    found = _PRECISION.fullmatch(texts[0]) if len(texts) == 1 else None
    share = float(found[1]) / 100.0 if found and found[1].count(".") < 2 else 0.0
    if not 0.0 < share < 1.0:
        raise UsageError(
            f"--precision {' '.join(texts)!r} is not a relative half width for --rare",
            remedy="Write the half width of its interval relative to it: --precision 10%.",
        )
    return share
