"""Many seeds of random faults against every kind of world, and what that was: `python -m tests.world.campaign --help`.

Ends with status 1 where a seed breaks a rule; the kind, the seed and the schedule are printed, and `--again FILE` with
these lines is the same history again.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from itertools import chain, count
from pathlib import Path
from random import Random
from typing import NamedTuple

from qsctl.sim.world.invariants.replicas import CommittedIsNeverOverwritten
from tests.world.moments import Moments
from tests.world.steering import KINDS, Steering, Trial, trial_of

GARBAGE_EVERY = 20
"""Worlds are full of cycles, and short: they are collected after so many."""

MIX = (*KINDS, *("three", "five", "swarm", "brief") * 3)
"""Of forty seeds thirty-six have three to five replicas."""


class Done(NamedTuple):
    """What a world came to."""

    trial: Trial
    """With the faults that it had."""
    counts: Counter[str]
    features: set[str]
    broken: list[str]


def look(trials: Sequence[Trial]) -> list[Done]:
    """Judge some worlds."""
    gc.disable()
    try:
        return [look_at(each) for each in trials]
    finally:
        gc.enable()
        gc.collect()


def look_at(trial: Trial) -> Done:
    judged = trial.world()
    moments = Moments(judged.world)
    judged.world.observers.add(moments)
    judged.run()
    total = Counter({f"{verb} (fault)": count for verb, count in judged.done_counts.items()})
    total.update({str(moment): count for moment, count in moments.counts.items()})
    total.update({f"seeds with {moment}": 1 for moment in moments.counts})
    replacements = judged.world.administrator.replacements
    counts = judged.counts
    total.update(
        {"queues deleted": len(replacements), "queues created again": sum(each.is_over for each in replacements)},
        seeds=1, samples=judged.world.offered_count, accepted=counts.accepted, redelivered=counts.redelivered,
        crashes=counts.crashes, elections=counts.elections, steps=judged.world.trace.count,
        committed=sum(
            len(list(each.records()))
            for each in judged.invariants
            if isinstance(each, CommittedIsNeverOverwritten)
        ),
    )  # fmt: skip
    total[f"seeds of {trial.kind}"] += 1
    broken = [f"{each.name}: {what}" for each in judged.verdicts() for _, what in each.violations]
    return Done(trial._replace(faults=judged.faults), total, moments.features, broken)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description="Random faults against simulated clusters.")
    parser.add_argument("--seeds", type=int, default=1000, help="how many worlds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--kinds", default=",".join(MIX), help="which worlds, in turn")
    parser.add_argument("--steered", action="store_true", help="draw towards what few seeds meet")
    parser.add_argument("--processes", type=int, default=1, help="how many at a time")
    parser.add_argument("--until", type=float, default=float("inf"), help="Unix time at which no more are begun")
    parser.add_argument("--again", type=Path, help="a file with what was printed of one world: run that alone")
    given = parser.parse_args()
    if given.again:
        done = look_at(trial_of(given.again.read_text(encoding="utf-8")))
        say("\n".join(done.broken) or "nothing is broken")
        return 1 if done.broken else 0
    names = given.kinds.split(",")
    steering = Steering(Random(f"steering/{given.first}"), names, given.first) if given.steered else None
    plain = (Trial(names[number % len(names)], given.first + number) for number in count())
    total: Counter[str] = Counter()
    violations = 0
    began = time.monotonic()
    with ProcessPoolExecutor(given.processes) if given.processes > 1 else nullcontext() as pool:
        while total["seeds"] < given.seeds and time.time() < given.until:
            job_count = min(given.processes, -(-(given.seeds - total["seeds"]) // GARBAGE_EVERY))
            wanted = [min(GARBAGE_EVERY, given.seeds - total["seeds"])] * job_count
            jobs = [[steering.next() if steering else next(plain) for _ in range(each)] for each in wanted]
            for done in chain.from_iterable((map if pool is None else pool.map)(look, jobs)):
                total += done.counts
                if steering:
                    assert done.trial.faults is not None
                    steering.learn(done.trial, done.trial.faults.steps, done.features)
                if done.broken:
                    violations += len(done.broken)
                    say(done.trial.text(*done.broken))
            met = f", {len(steering.met)} features" if steering else ""
            say(f"{time.monotonic() - began:.0f} s: {dict(total)}{met}, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
