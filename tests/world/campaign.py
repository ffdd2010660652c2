"""Many seeds of random faults against every kind of world, and what that was: `python -m tests.world.campaign --help`.

Ends with status 1 where a seed breaks a rule; the kind and the seed are printed, and `judge(kinds.KIND(SEED))` is the
same history again.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice

from qsctl.sim.world.invariants.replicas import CommittedIsNeverOverwritten
from qsctl.sim.world.results.verdict import JudgedWorld
from tests.world import kinds
from tests.world.moments import Moments

GARBAGE_EVERY = 20
"""Worlds are full of cycles, and short: they are collected after so many."""

KINDS = {
    each.__name__: each
    for each in (
        kinds.three, kinds.five, kinds.three_unsynchronized, kinds.volatile, kinds.compacting, kinds.lifespans,
        kinds.dead_letters, kinds.dead_letters_compacting, kinds.administered, kinds.two, kinds.four,
        kinds.replaced, kinds.replaced_in_order, kinds.replaced_with_dead_letters, kinds.bereft, kinds.survivors,
        kinds.visited, kinds.brief, kinds.swarm, kinds.large,
    )
}  # fmt: skip
MIX = (*KINDS, *("three", "five", "swarm", "brief") * 3)
"""Of thirty-two seeds thirty have three to five replicas."""


def look(job: tuple[tuple[str, int], ...]) -> tuple[Counter[str], list[str]]:
    """Judge some worlds; what they came to, and what was broken."""
    gc.disable()
    total: Counter[str] = Counter()
    broken: list[str] = []
    for name, seed in job:
        judged = JudgedWorld(KINDS[name](seed))
        moments = Moments(judged.world)
        judged.world.observers.add(moments)
        judged.run()
        total.update({f"{verb} (fault)": count for verb, count in judged.done_counts.items()})
        total.update({str(moment): count for moment, count in moments.counts.items()})
        total["queues deleted"] += len(judged.world.administrator.replacements)
        total["queues created again"] += sum(each.is_over for each in judged.world.administrator.replacements)
        counts = judged.counts
        total.update(
            seeds=1, samples=judged.world.offered_count, accepted=counts.accepted, redelivered=counts.redelivered,
            crashes=counts.crashes, elections=counts.elections, steps=judged.world.trace.count,
            committed=sum(
                len(list(each.records()))
                for each in judged.invariants
                if isinstance(each, CommittedIsNeverOverwritten)
            ),
        )  # fmt: skip
        total[f"seeds of {name}"] += 1
        broken += [f"{name}({seed}): {each.name}: {what}" for each in judged.verdicts() for _, what in each.violations]
    gc.collect()
    return total, broken


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
    parser.add_argument("--processes", type=int, default=1, help="how many at a time")
    parser.add_argument("--until", type=float, default=float("inf"), help="Unix time at which no more are begun")
    given = parser.parse_args()
    turns = islice(cycle(given.kinds.split(",")), given.seeds)
    pairs = [(kind, seed) for seed, kind in enumerate(turns, given.first)]
    jobs = [tuple(pairs[at : at + GARBAGE_EVERY]) for at in range(0, len(pairs), GARBAGE_EVERY)]
    total: Counter[str] = Counter()
    violations = 0
    began = time.monotonic()
    with ProcessPoolExecutor(given.processes) as pool:
        for at in range(0, len(jobs), given.processes):
            if time.time() > given.until:
                break
            for counts, broken in pool.map(look, jobs[at : at + given.processes]):
                total += counts
                violations += len(broken)
                for each in broken:
                    say(each)
            if at % (10 * given.processes) == 0:
                say(f"{time.monotonic() - began:.0f} s: {dict(total)}, {violations} violations")
    say(f"{time.monotonic() - began:.0f} s: {dict(total)}, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
