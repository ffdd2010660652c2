"""How long a moved depth is simulated in the view "What if": the built-in scenario at 2 s of horizon, no browser.

Each round asks for a depth that was not asked for before, as a moved slider does; the arrivals are remembered from the
first question on. What a reader waits for is the first interval, of three repetitions; the whole answer has ten.
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.web._what_if_answerer import Answerer, WhatIfQuestion

ROUNDS = 20
REPETITIONS = 10
OF_INTERVAL = 3
_LONGEST_S = 600.0


def answered(answerer: Answerer, scenario: Scenario) -> tuple[float, float]:
    """Return the seconds until the first interval and until the whole answer."""
    changed = threading.Event()
    question = WhatIfQuestion("benchmark", (scenario,), REPETITIONS, 240, changed.set)
    began, interval_s = time.perf_counter(), 0.0
    answerer.ask(question)
    while not question.ended.is_set():
        assert changed.wait(_LONGEST_S)
        changed.clear()
        assert question.refusal is None
        if not interval_s and question.complete >= OF_INTERVAL:
            interval_s = time.perf_counter() - began
    return interval_s, time.perf_counter() - began


def test_a_moved_depth_is_answered(benchmark: Any) -> None:
    scenario = apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "2s"})
    answerer = Answerer(2)
    try:
        answered(answerer, scenario)  # compiles, and draws the arrivals
        depths = iter(range(500, 500 + ROUNDS))
        found: list[tuple[float, float]] = []

        def move() -> None:
            moved = apply_overrides(scenario, {"profile[trading]/queue[D-1]/max-depth": str(next(depths))})
            found.append(answered(answerer, moved))

        benchmark.pedantic(move, rounds=ROUNDS)
    finally:
        answerer.close()
    interval_s = sorted(interval for interval, _ in found)
    benchmark.extra_info |= {
        "interval_median_s": statistics.median(interval_s),
        "interval_p95_s": interval_s[-(-95 * ROUNDS // 100) - 1],
        "whole_median_s": statistics.median(whole for _, whole in found),
    }
    assert answerer.failures == 0
